"""One fuzz target per format: read a damaged input whole, or refuse it with an error of ours.

The corpus has a folder per format; each entry is a file, or a folder of files that belong together. Stores are made
anew, so that they have the format of the day.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from tests.fuzz.mutate import mutated

import isthmus as ist
from isthmus.errors import IsthmusError
from isthmus.graph.formats import FORMATS

CORPUS = Path(__file__).parent / "corpus"
OPTIONS: dict[str, list[dict[str, object]]] = {  # options that lead to other code; one set is drawn for each input
    "text": [
        {},
        {},
        {"weight": 3},
        {"header": True},
        {"ids": "string"},
        {"vertices": 50},
        {"allow_negative": True, "weight": 3},
        {"missing": "skip"},
    ],
    "adjacency": [{}, {"vertices": 50}],
    "graphalytics": [{}],
    "gapbs": [{}, {"allow_negative": True}],
    "parquet": [{}, {"ids": "string"}, {"weight": "none"}],
    "arrow": [{}, {"ids": "string"}, {"weight": "none"}],
    "matrix-market": [{}, {"weight": "none"}, {"allow_negative": True}],
    "dimacs": [{}, {"weight": "none"}],
    "galois": [{}, {"edge_type": "float32"}, {"weight": "none"}],
    "subway": [{}],
    "ligra": [{}, {"allow_negative": True}],
    "metis": [{}],
    "graphml": [{}, {"ids": "string"}, {"weight": "none"}],
    "webgraph": [{}],
    "isthmus": [{}, {"directed": False}, {"parallel": "drop"}],
}


def entries(format: str) -> list[Path]:
    found = sorted((stores() if format == "isthmus" else CORPUS / format).iterdir())
    assert found, f"no corpus for {format}"
    return found


@cache
def stores() -> Path:
    """A folder of small stores."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ist.ingest(
        (np.array([5, 5, 9]), np.array([9, -2, 5]), np.array([1, 2, 3])), folder / "numbers.isthmus", order="hub"
    ).close()
    ist.ingest((np.array(["a", "b"]), np.array(["b", "c"])), folder / "words.isthmus", directed=False).close()
    return folder


def damaged(format: str, folder: Path, dice: random.Random) -> Path:
    """A damaged copy of an entry of the corpus; returns the path to read."""
    entry = dice.choice(entries(format))
    if entry.is_file():
        path = folder / entry.name
        path.write_bytes(mutated(entry.read_bytes(), dice))
        return path
    shutil.rmtree(folder / entry.name, ignore_errors=True)
    shutil.copytree(entry, folder / entry.name)
    victim = dice.choice(sorted(path for path in (folder / entry.name).rglob("*") if path.is_file()))
    victim.write_bytes(mutated(victim.read_bytes(), dice))
    return folder / entry.name if format == "isthmus" else dice.choice(sorted((folder / entry.name).iterdir()))


def attempt(format: str, path: Path, dice: random.Random) -> bool:
    """Read an input, and all of the graph; True: it was accepted. Whatever is not an error of ours is a fault."""
    options = dice.choice(OPTIONS[format])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ist.IsthmusWarning)
            graph = ist.read(path, format=format, memory="400MB", threads=1, **options)
    except IsthmusError:
        return False
    with graph:
        users = graph.ids.users(np.arange(graph.vertices))
        assert len(set(users.tolist())) == graph.vertices
        assert sum(graph.out_degree(user) for user in users[:20]) <= graph.arcs
        for user in users[:5]:
            assert set(graph.neighbors(user).tolist()) <= set(users.tolist())
    return True


assert set(OPTIONS) == set(FORMATS.declared), "every format has a target"
