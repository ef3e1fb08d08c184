"""Ingest: text against pyarrow.csv, generator and binary into a store, and a small memory limit.

    python benchmarks/ingest.py [--folder DIR] [--edges 50000000] [--memory-edges 200000000] [--rounds 5]

Prints Markdown. Needs about 8 GB of disk in DIR for the default sizes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
from gapbs import export
from harness import alternate, child, isthmus, table, verdict

import isthmus as ist
from isthmus.graph.ingest.generators import Rmat

SCALE = 22


def write_text(path: Path, edges: int) -> None:
    """An RMAT edge list as tab-separated text."""
    source = Rmat(SCALE, edges / (1 << SCALE), seed=1)
    schema = pa.schema([("source", pa.uint32()), ("target", pa.uint32())])
    with pc.CSVWriter(path, schema, write_options=pc.WriteOptions(include_header=False, delimiter="\t")) as writer:
        for first in range(0, edges, 1 << 20):
            block = source.make(first, min(1 << 20, edges - first))
            writer.write_batch(pa.record_batch([pa.array(block.sources), pa.array(block.targets)], schema=schema))


def fresh(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    return path


def text_against_pyarrow(folder: Path, edges: int, rounds: int) -> list[list[str]]:
    path, store = folder / "edges.tsv", folder / "text.isthmus"
    write_text(path, edges)
    options = pc.ReadOptions(column_names=["source", "target"])

    def ours() -> None:
        graph = ist.ingest(path, fresh(store))
        assert graph.edges == edges and ist.verify(store).ok

    seconds = alternate(
        {"pyarrow.csv": lambda: pc.read_csv(path, options, pc.ParseOptions(delimiter="\t")), "isthmus": ours}, rounds
    )
    ratio = seconds["isthmus"] / seconds["pyarrow.csv"]
    size = path.stat().st_size
    path.unlink()
    return [
        [
            f"text, {edges / 1e6:.0f} M edges ({size / 1e6:.0f} MB), directed, in-edges kept, store verified: seconds "
            f"÷ pyarrow.csv read",
            f"{seconds['isthmus']:.2f} s ÷ {seconds['pyarrow.csv']:.2f} s = {ratio:.2f}",
            "≤ 1.5",
            verdict(ratio, 1.5),
        ]
    ]


def into_store(folder: Path, rounds: int) -> list[list[str]]:
    made, again = folder / "made.isthmus", folder / "again.isthmus"
    graph = ist.generate("rmat", fresh(made), scale=SCALE, seed=1)
    binary = export(graph, weighted=False)
    drawn = graph.report.edges_read if graph.report else 0

    def from_binary() -> None:
        assert ist.ingest(binary, fresh(again)).edges == graph.edges

    seconds = alternate(
        {"generator": lambda: ist.generate("rmat", fresh(made), scale=SCALE, seed=1), "binary": from_binary}, rounds
    )
    rows = []
    for name, edges in (("generator", drawn), ("binary", graph.edges)):
        rate = edges / seconds[name] / 1e6
        what = f"{name} → store, RMAT {SCALE}, {edges / 1e6:.0f} M undirected edges: M edges/s"
        rows.append([what, f"{rate:.1f}", "≥ 20", verdict(rate, 20, False)])
    binary.unlink()
    return rows


def small_memory(folder: Path, edges: int) -> list[list[str]]:
    path, store = folder / "large.tsv", folder / "small.isthmus"
    write_text(path, edges)
    run = child(isthmus("ingest", str(path), "-o", str(fresh(store)), "--memory", "512MB", "--json"))
    assert ist.verify(store).ok
    path.unlink()
    return [
        [
            f"--memory 512MB, text of {edges / 1e6:.0f} M edges, directed, in-edges kept: peak RSS "
            f"({run.seconds:.0f} s)",
            f"{run.peak_rss / 1e6:.0f} MB",
            "≤ 762 MB",
            verdict(run.peak_rss / 1e6, 762),
        ]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--memory-edges", type=int, default=200_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = [["what", "measured", "target", ""]]
        rows += text_against_pyarrow(folder, options.edges, options.rounds)
        rows += into_store(folder, options.rounds)
        rows += small_memory(folder, options.memory_edges)
        print(table(rows))


if __name__ == "__main__":
    main()
