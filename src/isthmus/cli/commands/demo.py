"""`isthmus demo`: four algorithms on a generated graph, with a budget much smaller than its edges."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from isthmus.cli import help_lists

ScaleOption = Annotated[int, typer.Option(min=8, max=26, help="2**scale vertices, 16 times as many edges.")]
FolderOption = Annotated[
    Path | None, typer.Option(help="Folder for the graph. Default: a temporary folder in the current one.")
]
SHARE = "10%"
TOLERANCE = 1e-6


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(demo)


def demo(scale: ScaleOption = 20, folder: FolderOption = None) -> None:
    """Make a graph, check it, and run four algorithms on it from disk in a tenth of the memory it needs."""
    with tempfile.TemporaryDirectory(prefix=".isthmus-demo-", dir=folder or Path.cwd()) as place:
        play(scale, Path(place) / "demo.isthmus")


def play(scale: int, path: Path) -> None:
    from isthmus.cli.console import Bar, facts, say
    from isthmus.graph.graph import open_graph
    from isthmus.graph.ingest.build import generate
    from isthmus.graph.store.verify import verify
    from isthmus.memory import format_size

    say(f"1. Making a weighted RMAT graph of 2**{scale} vertices, straight into a store on disk ...", "bold")
    start = time.perf_counter()
    with Bar() as bar:
        made = generate("rmat", path, scale=scale, seed=1, weights="1:255", progress=bar)
        seconds = time.perf_counter() - start
        verdict = verify(path, progress=bar)
    report = made.report
    assert report is not None
    say("")
    facts(
        "",
        [
            ("made", f"{made.edges:,} edges in {seconds:.1f} s, {report.parallel_merged:,} repeated ones merged"),
            (
                "on disk",
                f"{format_size(made.edge_bytes)} of edges; {verdict.blocks:,} blocks, "
                f"{'all sound' if verdict.ok else 'DAMAGED'}",
            ),
        ],
    )
    graph = open_graph(path)
    hub = max(range(min(graph.vertices, 64)), key=graph.degree)
    say("")
    say(f"2. Four algorithms, once in memory and once from disk with {SHARE} of the edges in memory ...", "bold")
    rows = [compare(graph, hub, name) for name in ("bfs", "sssp", "weakly_connected_components", "pagerank")]
    show(rows)
    agree = all(row["agree"] for row in rows)
    saved = rows[0]["edge_bytes"] / rows[0]["near_edges"]
    say("")
    say(
        f"All answers agree. Edges on disk were {saved:.0f} times what was allowed in memory."
        if agree
        else "Answers differ: please report this.",
        "bold green" if agree else "bold red",
    )
    if not agree or not verdict.ok:
        raise typer.Exit(1)


def compare(graph: Any, hub: int, name: str) -> dict[str, Any]:
    """Run one algorithm in memory and from disk."""
    import numpy as np

    import isthmus
    from isthmus.cli.console import Watch

    answer: dict[str, Any] = (
        {"source": hub} if name in ("bfs", "sssp") else {"tol": TOLERANCE} if name == "pagerank" else {}
    )
    with Watch(name) as watch:
        near = getattr(isthmus, name)(graph, **answer, watch=watch.seen, say=watch.say)
        far = getattr(isthmus, name)(graph, **answer, memory=SHARE, watch=watch.seen, say=watch.say)
    a, b = near.summary(), far.summary()
    one, other = near.filled(), far.filled()
    agree = np.abs(one - other).sum() <= 2 * TOLERANCE if name == "pagerank" else np.array_equal(one, other)
    return {
        "name": name,
        "iterations": b["iterations"],
        "memory": a["seconds"]["iterate"],
        "disk": b["seconds"]["iterate"],
        "moved": b["transfer"]["bytes"],
        "ratio": b["transfer"]["ratio"],
        "agree": bool(agree),
        "engines": b["engines"],
        "edge_bytes": b["graph"]["edge_bytes"],
        "near_edges": b["memory"]["split"]["edges"],
        "result": b["result"],
    }


def show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from isthmus.cli.console import out
    from isthmus.memory import format_size

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="cyan")  # fits 80 columns
    for title in ("algorithm", "found", "iterations", "in RAM", "from disk", "moved", "x edges", "same"):
        table.add_column(title, justify="left" if title in ("algorithm", "found") else "right", no_wrap=True)
    for row in rows:
        name, value = next(iter(row["result"].items()))
        found = f"{value:,} {name}" if isinstance(value, int) else f"{name} {value:.4g}"
        table.add_row(
            row["name"].replace("weakly_connected_", ""),
            found,
            str(row["iterations"]),
            f"{row['memory']:.2f} s",
            f"{row['disk']:.2f} s",
            format_size(row["moved"]),
            f"{row['ratio']:.2f}",
            "yes" if row["agree"] else "NO",
        )
    out.print(table)
