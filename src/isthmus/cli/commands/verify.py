"""`isthmus verify STORE`: check a store against its checksums."""

from __future__ import annotations

import time

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import Json, StorePath, Threads
from isthmus.errors import StoreError


def verify(store: StorePath, threads: Threads = None, json: Json = False) -> None:
    """Check every block of a store against its checksum, and the arrays against each other."""
    from isthmus.cli import verbosity
    from isthmus.cli.console import Bar, counted, fail, say, show_json
    from isthmus.graph.store.verify import verify as run
    from isthmus.memory import format_size

    start = time.perf_counter()
    with Bar() as bar:
        verdict = run(store, threads=threads, progress=bar)
    seconds = time.perf_counter() - start
    if json:
        found = {"ok": verdict.ok, "blocks": verdict.blocks, "bytes": verdict.bytes, "problems": verdict.problems}
        show_json({"path": str(store), **found, "seconds": seconds})
    elif verdict.ok and not verbosity.quiet:
        say(
            f"{store} is sound: {counted(verdict.blocks, 'block')}, {format_size(verdict.bytes)}, in {seconds:.2f} s",
            "green",
        )
    for problem in () if json else verdict.problems:
        fail(f"{store}: {problem}")
    if not verdict.ok:
        raise typer.Exit(StoreError.exit_code)


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(verify)
