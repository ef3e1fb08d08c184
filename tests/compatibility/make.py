"""Makes `before.tar.xz`: files that an older version wrote, and what it answered, for `test_written_before.py`.

    PYTHONPATH=OLD/src python -m tests.compatibility.make

The archive in git was made by commit 43b30c1. It holds two stores, a stream's folder that was closed and one whose
process was killed, checkpoints of runs that were stopped, and answers.json. Only public names are used: the test uses
the same functions with the present version. Times and owners of files are left out of the archive. Still, two archives
of one version differ, since a stream draws the seed of its log at random.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

ARCHIVE = Path(__file__).with_name("before.tar.xz")
ANSWERS = "answers.json"
VERTICES, EDGES = 100, 450
BATCHES = 6
CHECKPOINT = 3  # the batch after which a stream writes a checkpoint
STOPPED = (3, 2)  # iterations after which a run is stopped; the second if it has fewer
STREAMS = ("closed", "killed")
MACHINE = ("before", "00000000-0000-0000-0000-000000000000")  # host and boot of a killed process: another machine's
DIGITS = 10  # of fractions in answers
FAR: dict[str, Any] = {
    "memory": "1%",
    "policy": "filter",
    "threads": 2,
}  # such small graphs are read from disk all the same


@ist.monotone(initial=np.inf, combine="min", start=0, column="cost")
def toll(cost, weight, base=2):
    """A program of a user. A checkpoint names it by its code, so it must not change."""
    return cost + base + weight % 5


@ist.accumulative(initial=1.0, threshold=1e-7, column="score")
def spread(delta, degree, share=0.5):
    """Another one."""
    return share * delta / degree


RUNS: dict[str, Callable[..., Any]] = {
    "bfs": lambda g, **how: ist.bfs(g, 0, predecessors=True, **how),
    "sssp": lambda g, **how: ist.sssp(g, 0, **how),
    "widest_path": lambda g, **how: ist.widest_path(g, 0, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, **how),
    "personalized_pagerank": lambda g, **how: ist.personalized_pagerank(g, [0, 1, 2], weight=True, **how),
    "katz": lambda g, **how: ist.katz(g, alpha=0.005, **how),
    "php": lambda g, **how: ist.php(g, 0, weight=True, **how),
    "multi_source_bfs": lambda g, **how: ist.multi_source_bfs(g, [0, 1, 2], **how),
    "betweenness_centrality": lambda g, **how: ist.betweenness_centrality(g, k=20, **how),
    "label_propagation": lambda g, **how: ist.label_propagation(g, max_iter=6, **how),
    "core_number": lambda g, **how: ist.core_number(g, **how),
    "strongly_connected_components": lambda g, **how: ist.strongly_connected_components(g, **how),
    "minimum_spanning_forest": lambda g, **how: ist.minimum_spanning_forest(g, **how),
    "triangle_count": lambda g, **how: ist.triangle_count(g, **how),
    "circuit": lambda g, **how: ist.circuit(g, {0: 1.0, 1: 0.0}, **how),
    "toll": lambda g, **how: ist.run(toll(source=0, base=3), g, **how),
    "spread": lambda g, **how: ist.run(spread(source=0), g, **how),
}


class Stopped(Exception):
    """Ends a run between two iterations."""


def stop_after(count: int) -> Callable[[Any], None]:
    """To watch a run with: it ends when it has had so many iterations."""
    seen = iter(range(1, count))

    def watch(iteration: Any) -> None:
        if next(seen, None) is None:
            raise Stopped

    return watch


# ---- what is written, and read again


def numbered(path: Path) -> Any:
    """A directed graph with whole weights, whose vertices are numbers, in hub order."""
    draw = np.random.default_rng(5)
    sources, targets = (VERTICES * draw.random((2, EDGES)) ** 2).astype(np.int64)
    weights = draw.integers(1, 50, EDGES).astype(np.int32)
    return ist.ingest((sources, targets, weights), path, vertices=VERTICES, order="hub", parallel="min")


def named(path: Path) -> Any:
    """An undirected graph with fractions for weights, whose vertices are texts."""
    edges = [(f"stop {7 * i % 40}", f"stop {11 * i % 43}", i / 4) for i in range(1, 90)]
    return ist.ingest(edges, path, directed=False, parallel="sum")


def batches() -> Iterator[dict[str, Any]]:
    """Batches with new and deleted edges, new weights, new and removed vertices."""
    draw = random.Random(7)
    for number in range(BATCHES):
        inserts = [(draw.randrange(50), draw.randrange(80, 120), draw.randrange(1, 50)) for _ in range(20)]
        deletes = [(draw.randrange(40), draw.randrange(40)) for _ in range(60)]
        yield {"inserts": inserts, "deletes": deletes, "remove_vertices": [60 + number], "add_vertices": [200 + number]}


def programs() -> list[Any]:
    return [ist.SSSP(source=0), ist.WeaklyConnectedComponents(), ist.PageRank(tol=1e-9), ist.CoreNumber()]


def store_answers(graph: Any) -> dict[str, Any]:
    """The edges of a store, and answers on it."""
    answers = (ist.weakly_connected_components(graph), ist.core_number(graph), ist.degrees(graph))
    with tempfile.TemporaryDirectory() as folder:
        ist.export(graph, Path(folder) / "edges.csv")
        return {
            "edges": sorted((Path(folder) / "edges.csv").read_text().splitlines()),
            "answers": [*map(by_vertex, answers)],
        }


def stream_answers(live: Any) -> dict[str, Any]:
    """How far a stream is, its edges and the answers of its programs."""
    with tempfile.TemporaryDirectory() as folder:
        live.save(Path(folder) / "now.isthmus")
        with ist.open(Path(folder) / "now.isthmus") as graph:
            found = {"number": live.number, **store_answers(graph)}
    return {**found, "programs": {name: by_vertex(live[name].result()) for name in sorted(live)}}


def by_vertex(result: Any) -> list[list[Any]]:
    """(vertex, value) of a result, by vertex; rows as they are for results without vertices."""
    return sorted(([plain(vertex), plain(value)] for vertex, value in result.items()), key=lambda pair: str(pair[0]))


def plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


# ---- making the archive


def write_stream(graph: Path, folder: Path, ends: str) -> None:
    """Apply all batches, then close the stream, or be killed."""
    with ist.stream(graph, programs(), log=folder, threads=1) as live:
        for number, batch in enumerate(batches(), 1):
            live.apply(**batch, id=f"batch {number}")
            if number == CHECKPOINT:
                live.checkpoint()
        if ends == "killed":
            os.kill(os.getpid(), signal.SIGKILL)


def make_stream(graph: Path, folder: Path, ends: str) -> dict[str, Any]:
    """The folder of a stream, by a process of its own, and what it answers; a copy is opened, as that changes files."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.compatibility.make", str(graph), str(folder), ends], check=False
    )
    assert made.returncode == (-signal.SIGKILL if ends == "killed" else 0), made
    for lock in folder.glob(".writer.lock"):  # a process that was killed leaves it; its first lines name the machine
        lock.write_text("\n".join([*MACHINE, *lock.read_text().split("\n")[len(MACHINE) :]]))
        os.utime(lock, (0, 0))  # as in the archive: without a sign of life for long, so that the lock no longer counts
    copy = shutil.copytree(folder, folder.with_name(f"{ends}.opened"))
    with ist.stream(log=copy, threads=1) as live:
        answers = stream_answers(live)
    shutil.rmtree(copy)
    return answers


def make_run(graph: Any, folder: Path, name: str) -> Any:
    """The checkpoints of a run that is stopped, and the answer of one that is not."""
    for count in STOPPED:
        try:
            RUNS[name](graph, checkpoint=folder, checkpoint_every=0, watch=stop_after(count), **FAR)
        except Stopped:
            break
    assert any(folder.iterdir()), name
    return by_vertex(RUNS[name](graph, **FAR))


def write_archive(folder: Path) -> None:
    """All files of a folder, in the order of their names, without times and owners."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.type, entry.mode = (tarfile.DIRTYPE, 0o700) if path.is_dir() else (tarfile.REGTYPE, 0o600)
            content = b"" if path.is_dir() else path.read_bytes()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    print(f"made by Isthmus in {Path(ist.__file__).parent}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "runs").mkdir()
        (folder / "streams").mkdir()
        with named(folder / "named.isthmus") as names, numbered(folder / "numbered.isthmus") as graph:
            answers = {
                "isthmus": ist.__version__,
                "stores": {"named": store_answers(names), "numbered": store_answers(graph)},
                "streams": {ends: make_stream(graph.path, folder / "streams" / ends, ends) for ends in STREAMS},
                "runs": {name: make_run(graph, folder / "runs" / name, name) for name in RUNS},
            }
        (folder / ANSWERS).write_text(json.dumps(answers))
        write_archive(folder)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        write_stream(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    else:
        main()
