"""A campaign against forged checkpoints: a run that resumes from one ends, with an answer or one clear error.

    python -m tests.faults.checkpoints --forged 2000 --seed 1
    NUMBA_BOUNDSCHECK=1 ISTHMUS_CACHE=/tmp/checked python -m tests.faults.checkpoints

Every algorithm is stopped after a few iterations. Then one thing of its checkpoint is changed, an array or a member of
the manifest, and the checksums are made right again. Any answer is allowed, as a forged checkpoint may describe the
state of another run; a crash, a traceback and an endless run are not. With Numba's checks of bounds (the second
command) an access outside of an array that happens to do no harm is found as well.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.damage import ALLOWED, FAULTS, REFUSED, Tally, examined

import isthmus as ist
from isthmus import sizes
from isthmus.errors import IsthmusError
from isthmus.graph.store.blocks import checksums
from isthmus.graph.store.sealed_json import digest, sealed

SMALL = {
    "piece": 1000,
    "few_edges": 500,
    "smallest_partition": 4 << 10,
    "least_buffer": 64 << 10,
    "alone": 500,
    "smallest_queue": 64,
}
HOW: dict[str, Any] = {"memory": "1%", "threads": 2}
LAYERS = [20, 30, 30, 10]
RUNS: dict[str, Callable[..., Any]] = {
    "bfs": lambda g, **how: ist.bfs(g, 0, predecessors=True, **how),
    "sssp": lambda g, **how: ist.sssp(g, 0, predecessors=True, **how),
    "widest_path": lambda g, **how: ist.widest_path(g, 0, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, **how),
    "pagerank, dangling": lambda g, **how: ist.pagerank(g, weight=True, dangling={1: 1.0}, **how),
    "pagerank, by deltas": lambda g, **how: ist.pagerank(g, **{**how, "policy": "subway"}),
    "personalized_pagerank": lambda g, **how: ist.personalized_pagerank(g, [0, 1, 2], weight=True, **how),
    "katz": lambda g, **how: ist.katz(g, alpha=0.005, **how),
    "php": lambda g, **how: ist.php(g, 0, weight=True, **how),
    "multi_source_bfs": lambda g, **how: ist.multi_source_bfs(g, [0, 1, 2], **how),
    "betweenness_centrality": lambda g, **how: ist.betweenness_centrality(g, k=20, **how),
    "label_propagation": lambda g, **how: ist.label_propagation(g, max_iter=2, **how),
    "core_number": lambda g, **how: ist.core_number(g, **how),
    "strongly_connected_components": lambda g, **how: ist.strongly_connected_components(g, **how),
    "minimum_spanning_forest": lambda g, **how: ist.minimum_spanning_forest(g, **how),
    "triangle_count": lambda g, **how: ist.triangle_count(g, **how),
    "local_clustering_coefficient": lambda g, **how: ist.local_clustering_coefficient(g, **how),
    "circuit": lambda g, **how: ist.circuit(g, {0: 1.0, 1: 0.0}, max_iter=300, **how),
    "nn_inference": lambda g, **how: ist.nn_inference(g, np.ones((4, LAYERS[0])), layers=LAYERS, **how),
}
POLICIES = ("filter", "hytgraph", "scaph", "emogi")
WRONG = (
    -1,
    0,
    1,
    7,
    2**31,
    2**62,
    2**63,
    10**30,
    0.5,
    "x",
    None,
    True,
    False,
    [],
    {"dict": {}},
    {"float": "nan"},
    {"float": "inf"},
)


Array = np.ndarray[Any, Any]


class Killed(Exception):
    """Stops a run."""


def stop_after(count: int) -> Callable[[Any], None]:
    seen = iter(range(1, count))

    def watch(iteration: Any) -> None:
        if next(seen, None) is None:
            raise Killed

    return watch


def build(folder: Path) -> dict[str, Any]:
    """A directed graph in hub order, an undirected one, and a network, all with weights."""
    draw = np.random.default_rng(5)
    ends = (300 * draw.random((2, 3000)) ** 2).astype(np.int64)
    weights = draw.integers(1, 50, 3000).astype(np.int32)
    first = np.cumsum([0, *LAYERS])
    layered = [
        (u, v)
        for k in range(len(LAYERS) - 1)
        for u in range(first[k], first[k + 1])
        for v in range(first[k + 1], first[k + 2])
    ]
    arcs = np.array(layered).T
    return {
        "directed": ist.ingest((*ends, weights), folder / "directed.isthmus", vertices=310, order="hub"),
        "undirected": ist.generate("grid", folder / "undirected.isthmus", rows=40, columns=40, weights="1:99", seed=3),
        "network": ist.ingest((*arcs, draw.random(arcs.shape[1])), folder / "network.isthmus"),
    }


class Forging:
    """Checkpoints to forge, by number; what is forged how follows from the number alone. `few`: one for each
    algorithm.
    """

    def __init__(self, folder: Path, seed: int, few: bool = False) -> None:
        self.folder, self.seed, self.few = folder, seed, few
        self.graphs = build(folder)
        self.cases: list[tuple[str, str, dict[str, Any], Path]] = []
        for number, name in enumerate(RUNS):
            for graph in (
                ("network",) if name == "nn_inference" else ("directed",) if few else ("directed", "undirected")
            ):
                self._stop(name, graph, {**HOW, "policy": POLICIES[number % len(POLICIES)]})

    def _stop(self, name: str, graph: str, how: dict[str, Any]) -> None:
        """Keep the checkpoints of a run that was stopped early, and of one that was stopped later; then run it, to
        compile all it needs.
        """
        for count in (3,) if self.few else (2, 5):
            place = self.folder / f"{name}-{graph}-{count}"
            try:
                RUNS[name](self.graphs[graph], checkpoint=place, checkpoint_every=0, watch=stop_after(count), **how)
            except Killed:
                if place.exists():  # it had come to a checkpoint
                    self.cases.append((name, graph, how, place))
        RUNS[name](self.graphs[graph], **how)

    def examine(self, number: int, say: Callable[..., None]) -> None:
        """Forge a checkpoint and resume from it."""
        random = np.random.default_rng([self.seed, number])
        name, graph, how, place = self.cases[number % len(self.cases)]
        path = self.folder / f"store-{number}.isthmus"  # removed after a crash
        try:
            shutil.copytree(place, path)
            text = forge(path, number // len(self.cases), random)
            say(f"{name} on {graph}", None, text)
            say(f"{name} on {graph}", *outcome(lambda: RUNS[name](self.graphs[graph], checkpoint=path, **how)))
        finally:
            shutil.rmtree(path, ignore_errors=True)


def outcome(run: Callable[[], Any]) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run().to_arrow()
    except IsthmusError as error:
        text = str(error)
        return (REFUSED, text) if text and "\n" not in text else ("traceback", f"not one line: {text!r}")
    except Exception:
        return "traceback", traceback.format_exc()
    return ALLOWED, ""


def forge(path: Path, turn: int, random: np.random.Generator) -> str:
    """Change one thing in the checkpoint of a pass; returns what. In the first turns one array after another has all
    bits set.
    """
    passes = sorted(path.iterdir())
    folder = passes[turn % len(passes)]
    facts = json.loads((folder / "manifest.json").read_bytes())
    facts.pop("checksum")
    data = np.fromfile(folder / "arrays", np.uint8)
    whole = [place for place in facts["arrays"] if np.prod(place["shape"])]
    if turn // len(passes) < len(whole):
        place = whole[turn // len(passes)]
        entries_of(place, data).view(np.uint8)[:] = 0xFF
        text = f"array {facts['arrays'].index(place)}: all bits"
    elif whole and random.random() < 0.6:
        number = int(random.integers(len(whole)))
        text = f"array {number}: {change(whole[number], data, random)}"
    else:
        text = replace_member(facts, random)
    data.tofile(folder / "arrays")
    table = checksums(data).tobytes()
    (folder / "arrays.xxh3").write_bytes(table)
    (folder / "manifest.json").write_bytes(sealed({**facts, "checksums": digest(table)}))
    return text


def entries_of(place: dict[str, Any], data: Array) -> Array:
    dtype = np.dtype(place["dtype"])
    return data[place["at"] :][: int(np.prod(place["shape"])) * dtype.itemsize].view(dtype)


def change(place: dict[str, Any], data: Array, random: np.random.Generator) -> str:
    """Change the contents of an array, all or one entry."""
    entries = entries_of(place, data)
    dtype = entries.dtype
    extremes = (
        [-1, 0, 1, entries.size - 1, entries.size, 1 << 30]
        if dtype.kind in "iu"
        else [0.0, -1.0, np.nan, np.inf, 1e300]
    )
    kind, where = int(random.integers(4)), int(random.integers(entries.size))
    value = extremes[int(random.integers(len(extremes)))]
    number = np.array(value).astype(dtype) if dtype.kind not in "b" else np.array(bool(value))
    if kind == 0:
        entries.view(np.uint8)[:] = random.integers(0, 256, entries.nbytes)
        return f"random bytes, {dtype}"
    if kind == 1:
        entries[:] = number
        return f"all {number}, {dtype}"
    if kind == 2:
        entries[where:] = number
        return f"{number} from entry {where} on, {dtype}"
    entries[where] = number
    return f"{number} at entry {where}, {dtype}"


def members(inside: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all members of a manifest."""
    for key in inside if isinstance(inside, dict) else range(len(inside)):
        yield (*path, key)
        if isinstance(inside[key], dict | list):
            yield from members(inside[key], (*path, key))


def replace_member(facts: dict[str, Any], random: np.random.Generator) -> str:
    """Replace one member of the value, the places of arrays or the memory by something else."""
    paths = [path for path in members(facts) if path[0] in ("value", "arrays", "memory", "iteration", "pass")]
    path = paths[int(random.integers(len(paths)))]
    inside = facts
    for key in path[:-1]:
        inside = inside[key]
    choices = [*WRONG, {"array": 0}, {"array": int(random.integers(len(facts["arrays"]) + 1))}]
    if isinstance(inside[path[-1]], int):
        choices += [inside[path[-1]] + 1, inside[path[-1]] - 1, inside[path[-1]] * 2]
    inside[path[-1]] = copy.deepcopy(choices[int(random.integers(len(choices)))])
    return f"{'.'.join(map(str, path))} = {str(inside[path[-1]])[:40]}"


def run(
    forged: int,
    seed: int = 1,
    only: int | None = None,
    few: bool = False,
    children: int = 2,
    say: Callable[[str], None] = print,
) -> Tally:
    """Run a campaign; returns how often each outcome was seen. Every fault is told by `say`."""
    tally: Tally = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="forging-") as folder, sizes.using(**SMALL):
        start = time.monotonic()
        campaign = Forging(Path(folder), seed, few)
        say(f"{len(campaign.cases)} checkpoints in {time.monotonic() - start:.1f} s")
        numbers = list(range(forged)) if only is None else [only]
        for number, what, result, details in examined(campaign, numbers, children):
            tally[result] += 1
            if result in FAULTS or only is not None:
                say(f"checkpoint {number}: {what}: {result}: {details}")
    say(f"{len(numbers)} forged checkpoints: " + ", ".join(f"{count} {name}" for name, count in tally.most_common()))
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--forged", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one checkpoint to look at")
    given = parser.parse_args()
    tally = run(given.forged, given.seed, given.only)
    return int(any(tally[fault] for fault in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
