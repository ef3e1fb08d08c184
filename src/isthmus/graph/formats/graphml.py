"""GraphML, for small graphs: an XML file with `<node id>` and `<edge source target>`.

The parser takes a file in pieces and keeps a block of edges. Document types and entities are refused before they are
expanded, so no file can grow in memory or reach for other files. Nested graphs, hyperedges and edges that disagree with
`edgedefault` are refused. The data key named `weight` is the weight. Other attributes are not read. The ids of all
nodes are held in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.text import LOOK
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.names import encode
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import WIDTHS, as_key, check_weights
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import Lines
from isthmus.messages import option
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

PIECE = 64 << 10  # bytes given to the parser at once
TOKEN = 1 << 20  # bytes that a tag may have; the parser holds it whole
DEPTH = 32  # of elements: GraphML needs five
NUMBER = 64  # letters of a weight
BLOCK = 1 << 14  # edges with their ids as Python objects
INTEGER = re.compile(r"-?[0-9]{1,18}")
CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 cannot hold
SPACE = "http://graphml.graphdrawing.org/xmlns"


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a GraphML file")
    return GraphmlSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """All nodes, then all edges, with the users' ids."""
    kind = "double" if edges.weight_dtype.kind == "f" else "long"
    key = f'  <key id="w" for="edge" attr.name="weight" attr.type="{kind}"/>\n' if edges.weighted else ""
    default = "directed" if edges.directed else "undirected"
    head = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{SPACE}">\n{key}  <graph edgedefault="{default}">\n'
    )
    file.write(head.encode())
    for first in range(0, edges.vertices, BLOCK):
        users = edges.users(np.arange(first, min(first + BLOCK, edges.vertices))).to_pylist()
        file.write("".join(f"    <node id={attribute(user, edges.name)}/>\n" for user in users).encode())
    for batch in edges.batches():
        for at in range(0, batch.num_rows, BLOCK):
            columns = [column.to_pylist() for column in batch.slice(at, BLOCK)]
            file.write("".join(element(*row) for row in zip(*columns, strict=True)).encode())
    file.write(b"  </graph>\n</graphml>\n")


def attribute(user: Any, name: str) -> str:
    """An id in quotes; an error if XML cannot hold it."""
    if CONTROL.search(str(user)):
        raise OptionError(f"{name}: the id {user!r} has a control character, which XML cannot hold")
    return quoteattr(str(user), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def element(source: Any, target: Any, weight: Any = None) -> str:
    ends = f"source={attribute(source, '')} target={attribute(target, '')}"
    return f"    <edge {ends}/>\n" if weight is None else f'    <edge {ends}><data key="w">{weight!r}</data></edge>\n'


GRAPHML = Format(
    "graphml",
    open_path,
    endings=(".graphml",),
    words="a GraphML file",
    uses=("weight", "ids", "allow_negative", "max_expansion"),
    place=14,
    begins=(b"<graphml",),
    save=save,
    written="text",
)


Edge = tuple[str, str, "str | None", int]  # source, target, weight, line


class Handler:
    """The findings of the parser: the head of the graph, and the nodes and edges since they were last taken."""

    def __init__(self, path: Path, weight: str | int | None) -> None:
        self._path, self._asked = path, weight
        self.key: str | None = None  # of the weights
        self.default: str | None = None
        self.directed: bool | None = None
        self.nodes: list[str] = []
        self.edges: list[Edge] = []
        self._at: Edge | None = None  # the current edge
        self._open: list[str] = []  # elements
        self._text: list[str] | None = None  # of the current element, if it is read
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self._letters
        self.parser.StartDoctypeDeclHandler = self.parser.EntityDeclHandler = self._refused
        self._fed = 0

    def feed(self, data: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(data, last)
        except expat.ExpatError as error:
            self.fail(f"expected XML: {expat.ErrorString(error.code)}", error.lineno)
        self._fed += len(data)
        if self._fed - self.parser.CurrentByteIndex > TOKEN:
            self.fail(f"expected tags of at most {TOKEN} bytes")

    def fail(self, what: str, line: int | None = None) -> NoReturn:
        raise GraphFormatError(f"{self._path}:{line or self.parser.CurrentLineNumber}: {what}")

    def _refused(self, *details: Any) -> None:
        self.fail("has a document type or entities, which are not read; expected plain GraphML")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._open.append(tag)
        if len(self._open) > DEPTH:
            self.fail(f"expected elements at most {DEPTH} deep")
        if len(self._open) == 1 and tag != "graphml":
            self.fail(f"expected the element graphml, got {tag[:40]!r}")
        handle = (
            getattr(self, f"_{tag}", None)
            if tag in ("key", "default", "graph", "node", "edge", "data", "hyperedge", "port")
            else None
        )
        if handle is not None:
            handle(attributes)

    def _key(self, attributes: dict[str, str]) -> None:
        named = attributes.get("attr.name") == (self._asked or "weight") and attributes.get("for", "all") in (
            "edge",
            "all",
        )
        if named and self._asked != column_names.NONE and self.key is None:
            self.key = self._needed(attributes, "id")
            self._open[-1] = "weight key"

    def _default(self, attributes: dict[str, str]) -> None:
        if self._open[-2] == "weight key":
            self._text = []

    def _graph(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            self.fail("expected one graph, got a second or a nested one")
        default = attributes.get("edgedefault")
        if default not in ("directed", "undirected"):
            self.fail(f"expected edgedefault directed or undirected, got {default!r}")
        self.directed = default == "directed"

    def _node(self, attributes: dict[str, str]) -> None:
        self.nodes.append(self._needed(attributes, "id"))

    def _edge(self, attributes: dict[str, str]) -> None:
        if attributes.get("directed", str(self.directed).lower()) != str(self.directed).lower():
            self.fail("expected edges that are all directed or all undirected, as edgedefault says")
        if self._at is not None:
            self.fail("expected no edge inside an edge")
        self._at = (
            self._needed(attributes, "source"),
            self._needed(attributes, "target"),
            self.default,
            self.parser.CurrentLineNumber,
        )

    def _data(self, attributes: dict[str, str]) -> None:
        if self._open[-2:-1] == ["edge"] and self.key is not None and attributes.get("key") == self.key:
            self._text = []

    def _hyperedge(self, attributes: dict[str, str]) -> None:
        self.fail("has a hyperedge; expected edges between two vertices")

    def _needed(self, attributes: dict[str, str], name: str) -> str:
        if not attributes.get(name):
            self.fail(f"expected an attribute {name} of {self._open[-1]}")
        return attributes[name]

    def _letters(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) <= NUMBER:
            self._text.append(text)

    def _end(self, name: str) -> None:
        tag = self._open.pop()
        if tag == "edge" and self._at is not None:
            self.edges.append(self._at)
            self._at = None
        if self._text is None:
            return
        text, self._text = "".join(self._text).strip(), None
        if tag == "default":
            self.default = text
        elif self._at is not None:
            self._at = (*self._at[:2], text, self._at[3])


class GraphmlSource(EdgeSource):
    """The edges of a GraphML file."""

    unit = "B"
    replayable = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        if not isinstance(options.weight, str | None):
            raise OptionError(f"{path}: the weight is a data key; expected its name, got {options.weight!r}")
        self.total = path.stat().st_size
        self._nodes: list[str] = []
        self._ends: dict[str, int] = {}  # ids that edges name, each with a line where
        head = self._head()
        self.directed, self.weighted = head.directed, head.key is not None
        if options.weight not in (None, column_names.NONE) and not self.weighted:
            raise OptionError(f"{path}: no data key of edges is named {options.weight!r}")
        sample = head.nodes[:LOOK]
        whole = bool(sample) and all(INTEGER.fullmatch(node) for node in sample)
        self.ids = "int" if options.ids == "int" or (options.ids == "auto" and whole) else "string"

    def _head(self) -> Handler:
        """The file up to its first nodes."""
        handler = Handler(self._path, self._options.weight)
        for data, _ in self._pieces():
            handler.feed(data)
            if len(handler.nodes) >= LOOK or handler.edges:
                return handler
        handler.feed(b"", True)
        if handler.directed is None:
            raise GraphFormatError(f"{self._path}: expected an element graph, found none")
        return handler

    def _pieces(self) -> Iterator[tuple[bytes, int]]:
        for data, done in Bytes(self._path, self._options.max_expansion, PIECE):
            yield data.tobytes(), done

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        handler = Handler(self._path, self._options.weight)
        self._nodes, self._ends, self.signed, read = [], {}, False, 0
        self.weight_dtype = WIDTHS[0]
        for data, done in self._pieces():
            handler.feed(data)
            read += done
            self._nodes += handler.nodes
            handler.nodes.clear()
            if len(handler.edges) >= min(BLOCK, sizes.now.block_edges):
                yield self._block(handler, read)
                read = 0
        handler.feed(b"", True)
        self._nodes += handler.nodes
        yield self._block(handler, read)

    def _block(self, handler: Handler, done: int) -> EdgeBlock:
        edges, handler.edges = handler.edges, []
        self._ends.update((user, line) for source, target, _, line in edges for user in (source, target))
        lines = [line for *_, line in edges]
        ends = [self._ids(users, lines) for users in ([edge[0] for edge in edges], [edge[1] for edge in edges])]
        weights = self._weights(edges) if self.weighted else None
        if self.ids == "int":
            self.signed |= any(bool((column < 0).any()) for column in ends)
            return EdgeBlock(as_key(ends[0]), as_key(ends[1]), weights, None, done)
        sources, targets, names = encode(ends[0], ends[1], self.salt)
        return EdgeBlock(sources, targets, weights, names, done)

    def _ids(self, users: list[str], lines: list[int]) -> Any:
        """Ids as integers, or as an Arrow array of text."""
        if self.ids == "string":
            return pa.array([user.encode() for user in users], pa.large_binary())
        for user, line in zip(users, lines, strict=True):
            if not INTEGER.fullmatch(user):
                raise GraphFormatError(
                    f"{self._path}:{line}: expected integer ids of at most 18 digits, got {user[:40]!r} "
                    f"({option('ids', 'string')} takes any text)"
                )
        return np.array([int(user) for user in users], np.int64)

    def _weights(self, edges: list[Edge]) -> Any:
        values = []
        for _, _, text, line in edges:
            try:
                values.append(float(text or "") if not INTEGER.fullmatch(text or "") else int(text or ""))
            except ValueError:
                raise GraphFormatError(
                    f"{self._path}:{line}: expected a number as weight, got {text if text is None else text[:40]!r} "
                    f"({option('weight', column_names.NONE)} reads no weights)"
                ) from None
        column = np.array(values, None if values else np.int64)
        where = f"{self._path}: edges from line {edges[0][3] if edges else 0} on"
        weights, kind = check_weights(column, where, 0, self._options.allow_negative)
        self.weight_dtype = max(self.weight_dtype, kind, key=WIDTHS.index)
        return weights

    def check(self) -> None:
        """Every node once, and no edge at a node that is not there."""
        nodes = set(self._nodes)
        if len(nodes) < len(self._nodes):
            twice = next(node for node, count in Counter(self._nodes).items() if count > 1)
            raise GraphFormatError(f"{self._path}: expected every node once, got {twice[:40]!r} more than once")
        for user, line in self._ends.items():
            if user not in nodes:
                raise GraphFormatError(
                    f"{self._path}:{line}: expected edges between nodes of the file, got {user[:40]!r}, which is none"
                )

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        for at in range(0, len(self._nodes), BLOCK):
            nodes = self._nodes[at : at + BLOCK]
            users = self._ids(nodes, [0] * len(nodes))
            if self.ids == "string":
                sources, _, names = encode(users, pa.array([], pa.large_binary()), self.salt)
                yield EdgeBlock(sources, np.empty(0, np.uint64), None, names)
            else:
                self.signed |= bool((users < 0).any())
                yield EdgeBlock(users.view(np.uint64), np.empty(0, np.uint64))

    def report(self) -> dict[str, Any]:
        return {"format": "graphml"}


class Bytes(Lines):
    """A file in pieces that end anywhere, decompressed on the way."""

    def _broken(self, begun: Any) -> tuple[Any, Any]:
        return begun, begun[:0]
