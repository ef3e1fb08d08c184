"""A campaign against streams on forged stores: a stream ends, with answers or clear errors.

    python -m tests.faults.streams --stores 1000 --seed 1
    NUMBA_BOUNDSCHECK=1 ISTHMUS_CACHE=/tmp/checked python -m tests.faults.streams

The stores have right checksums; their lists, counts or weights are impossible or contradict each other (`spoiling.py`),
for example in-edges that are not those of the out-edges. A stream is opened on each, in memory or on disk, with drawn
programs. It takes batches that insert and delete edges, and add and remove vertices. A batch that is refused is not the
end: the next one is tried. Then an algorithm runs on the graph, and it is saved.

Other answers are allowed, as a forged store may describe another graph; a crash, a traceback and an endless run are
not. With Numba's checks of bounds (the second command) an access outside of an array that happens to do no harm is
found as well. Every SOUND-th store is sound: there every answer must be that of a run from scratch.
"""

from __future__ import annotations

import argparse
import collections
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
from tests.faults.damage import ALLOWED, FAULTS, REFUSED, RIGHT, SMALL, Tally, examined
from tests.faults.spoiling import Base, Copy, Forgery, forgeries, made

import isthmus as ist
from isthmus import sizes
from isthmus.errors import IsthmusError

Random = np.random.Generator
SOUND = 10
PROGRAMS: list[Callable[[Any], Any]] = [
    ist.BFS,
    lambda _: ist.WeaklyConnectedComponents(),
    lambda _: ist.PageRank(),
    lambda _: ist.CoreNumber(),
    lambda _: ist.TriangleCount(),
    lambda source: ist.PersonalizedPageRank([source]),
    lambda source: ist.MultiSourceBFS([source]),
]
WEIGHTED: list[Callable[[Any], Any]] = [ist.SSSP, ist.WidestPath]


def simple_bases(folder: Path) -> list[Base]:
    """Graphs that streams take: without parallel edges. Directed and undirected, with weights and without, both
    orders.
    """
    return [
        made(folder, "roads", directed=False, weights=np.int32, ids="int", order="natural", parallel="drop"),
        made(folder, "web", directed=True, weights=None, ids="dense", order="hub", parallel="drop"),
        made(folder, "names", directed=True, weights=np.float32, ids="string", order="natural", parallel="drop"),
        made(folder, "friends", directed=False, weights=None, ids="dense", order="natural", parallel="drop"),
    ]


def programs_for(base: Base) -> list[Callable[[Any], Any]]:
    return PROGRAMS + (WEIGHTED if base.weighted else [])


class Streaming:
    """Stores and what streams on them do, by number; all follows from the number alone."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.bases = simple_bases(folder)
        self.edges = [edges_of(base.path) for base in self.bases]
        for base, edges in zip(self.bases, self.edges, strict=True):  # compiles what all children need
            for on_disk in (False, True):
                follow(base.path, base, edges, programs_for(base), on_disk, np.random.default_rng(seed))

    def examine(self, number: int, say: Callable[..., None]) -> None:
        random = np.random.default_rng([self.seed, number])
        place = number % len(self.bases)
        base, path = self.bases[place], self.folder / f"store-{number}.isthmus"
        try:
            copy, text = Copy(base.path, path), "sound"
            if number % SOUND:
                kinds = list(forged(copy, random))
                forgery = kinds[number // len(self.bases) % len(kinds)]
                forgery.change(copy)
                copy.seal()
                text = f"forged {forgery.text}"
            known = programs_for(base)
            programs = [known[k] for k in random.choice(len(known), 2, replace=False)]
            on_disk = bool(random.integers(2))
            what = (
                f"stream {'on disk' if on_disk else 'in memory'} "
                f"{[program(base.source).algorithm.name for program in programs]}"
            )
            say(what, None, f"{base.name}: {text}")
            say(
                what,
                *outcome(lambda: follow(path, base, self.edges[place], programs, on_disk, random), text == "sound"),
            )
        finally:
            shutil.rmtree(path, ignore_errors=True)


def forged(copy: Copy, random: Random) -> Iterator[Forgery]:
    """The forgeries of all stores, and some where both directions differ in ways that are hard to see."""
    yield from forgeries(copy, random)
    for side in ("out", "in") if "in.targets" in copy.sections else ("out",):
        yield Forgery(
            f"{side}.targets: the last vertices are in lists in which they do not belong",
            moved_to_last(side, 0.3, random),
        )
        yield Forgery(f"{side}.targets: one edge leads to the last vertex", moved_to_last(side, 0.0, random))
        yield Forgery(f"{side}.targets: every list is the one before", rolled(side))


def moved_to_last(side: str, share: float, random: Random) -> Callable[[Copy], None]:
    """Entries of lists become some of the last vertices."""

    def change(copy: Copy) -> None:
        targets, n = copy.entries(f"{side}.targets"), copy.manifest["vertices"]
        chosen = np.flatnonzero(random.random(targets.size) < share) if share else random.integers(0, targets.size, 1)
        targets[chosen] = n - 1 - random.integers(0, 20 if share else 1, chosen.size)
        copy.forge(f"{side}.targets", targets)

    return change


def rolled(side: str) -> Callable[[Copy], None]:
    def change(copy: Copy) -> None:
        copy.forge(f"{side}.targets", np.roll(copy.entries(f"{side}.targets"), 40))

    return change


def edges_of(path: Path) -> tuple[Any, Any]:
    with ist.open(path) as graph:
        table = next(iter(graph.edge_batches()))
        return table["source"].to_pylist(), table["target"].to_pylist()


def follow(path: Path, base: Base, edges: tuple[Any, Any], programs: Any, on_disk: bool, random: Random) -> list[str]:
    """Let a stream take batches, then look at all it has. Returns the errors of batches."""
    errors: list[str] = []
    with (
        ist.open(path) as graph,
        ist.stream(graph, [program(base.source) for program in programs], threads=2, on_disk=on_disk) as live,
    ):
        vertices = sorted(set(edges[0]) | set(edges[1]))
        for size, removed in ((40, 0), (5, 1), (200, 30), (20, 400), (50, 3)):
            try:
                live.apply(**batch(live.graph.weighted, edges, vertices, base.source, size, removed, random))
                for name in live:
                    live[name].result().to_arrow()
                if on_disk and removed == 30:
                    live.merge()
            except IsthmusError as error:
                errors.append(one_line(error))
        if not errors and (wrong := live.check()):
            errors.append(f"not as from scratch: {wrong}")
        ist.weakly_connected_components(live.graph).to_arrow()
        saved = path.with_name(f"{path.stem}-saved.isthmus")
        live.save(saved)
        ist.open(saved).close()
        shutil.rmtree(saved)
    return errors


def batch(
    weighted: bool, edges: tuple[Any, Any], vertices: list[Any], source: Any, size: int, removed: int, random: Random
) -> dict[str, Any]:
    """Edges that the sound store has are deleted and inserted, others inserted, and vertices leave: `vertices` are
    those that stay.
    """
    some = random.choice(len(vertices), removed, replace=False).tolist()
    gone = {vertices[k] for k in some} | set(vertices[-removed // 2 :] if removed else ())
    gone.discard(source)
    stay = [v for v in vertices if v not in gone]
    vertices[:] = stay
    known = [(edges[0][k], edges[1][k]) for k in random.integers(0, len(edges[0]), size)]
    known = [edge for edge in known if not set(edge) & gone]
    fresh = [(stay[a], stay[b]) for a, b in random.integers(0, len(stay), (size, 2))] + known[: size // 4]
    inserts: list[Any] = [(u, v, 3) for u, v in fresh] if weighted else fresh
    return {"inserts": inserts, "deletes": known[size // 4 :], "remove_vertices": sorted(gone) or None}


def one_line(error: IsthmusError) -> str:
    text = str(error)
    if not text or "\n" in text:
        raise AssertionError(f"not one line: {text!r}")
    return text


def outcome(run: Callable[[], list[str]], sound: bool) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = run()
    except IsthmusError as error:
        errors = [one_line(error)]
    except Exception:
        return "traceback", traceback.format_exc()
    if sound:
        return ("wrong", "; ".join(errors)) if errors else (RIGHT, "")
    return (REFUSED, "; ".join(errors)) if errors else (ALLOWED, "")


def run(
    stores: int, children: int = 2, only: int | None = None, say: Callable[[str], None] = print, seed: int = 7
) -> Tally:
    """Run a campaign; returns how often each outcome was seen. Every fault is told by `say`."""
    tally: Tally = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="streams-") as folder, sizes.using(**SMALL):
        start = time.monotonic()
        campaign = Streaming(Path(folder), seed)
        numbers = list(range(stores)) if only is None else [only]
        for number, what, result, details in examined(campaign, numbers, children):
            tally[result] += 1
            if result in FAULTS or only is not None:
                say(f"store {number}: {what}: {result}: {details}")
        seconds = time.monotonic() - start
    say(
        f"{len(numbers)} stores in {seconds:.0f} s: "
        + ", ".join(f"{count} {name}" for name, count in tally.most_common())
    )
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--stores", type=int, default=1000)
    parser.add_argument("--children", type=int, default=2, help="processes that run them")
    parser.add_argument("--only", type=int, help="the number of one store to look at")
    parser.add_argument("--seed", type=int, default=7, help="other forgeries and other batches")
    given = parser.parse_args()
    tally = run(given.stores, given.children, given.only, seed=given.seed)
    return 1 if any(tally[fault] for fault in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
