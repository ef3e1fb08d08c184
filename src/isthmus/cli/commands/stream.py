"""`isthmus stream STORE`: follow updates, and keep answers current. `isthmus stream make-workload` makes updates to try
it with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isthmus.cli import help_lists
from isthmus.cli.commands import stream_compare, workload
from isthmus.cli.program_texts import SYNTAX
from isthmus.cli.shared_options import RUNNING, Json, StorePath, Threads

FOLLOW = "follow"  # the command that is meant where no other one is named
UNITS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}

Programs = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        metavar=SYNTAX,
        help="An algorithm to keep current, such as sssp:source=7 or pagerank:tol=1e-4; may be repeated.",
    ),
]
UpdatesOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|-",
        help="Changes with columns op, source, target, weight, time: Parquet, Arrow, CSV, JSON lines; - for a pipe.",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option(help="csv, jsonl, parquet or arrow. Default: from the file name, or the first line.")
]
BatchOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="ROWS", help="Changes per batch. Default: the workload's batch size, else 100000."),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Apply a batch after this much time, such as 1s or 500ms; for a file, by its column time."
    ),
]
ChangesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Write what every batch changed: a file per batch and program with vertex, old and new."
    ),
]
ChangesFormat = Annotated[str, typer.Option(metavar="parquet|csv", help="Format of the files of --changes.")]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Compare every answer with a run from scratch, after every batch.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Inserting an edge that exists, or deleting one that does not, is an error.")
]
SaveOption = Annotated[
    Path | None, typer.Option("-o", "--output", "--save", help="Write the graph as it is at the end: NAME.isthmus.")
]
LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="DIR",
        help="Keep every batch in this folder: killed and started again, the command goes on after the last one.",
    ),
]
LogSizeOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Length of the log after which the graph is saved there. Default: half the edges, at least 64MB.",
    ),
]
DeviceOption = Annotated[
    str, typer.Option(help="auto, cpu, or model:NAME for a modelled GPU.", rich_help_panel=RUNNING)
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        metavar="RECIPE",
        rich_help_panel=RUNNING,
        help="How a modelled GPU reads lists: auto, grapin, grapin-zc, grapin-page or grapin-recompute. On disk: a "
        "recipe of isthmus run. "
        "Default: auto.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        rich_help_panel=RUNNING,
        help="Memory limit, such as 512MB. Default: 60 % of the available memory. A share such as 10% keeps that much "
        "of the edges "
        "near; the rest stays on disk or, with --device model:NAME, in the host's memory.",
    ),
]
OnDiskOption = Annotated[
    bool | None,
    typer.Option(
        "--on-disk/--in-memory",
        help="Where the edges are. Default: in memory if they fit, else on disk.",
        rich_help_panel=RUNNING,
        show_default=False,
    ),
]
OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an existing store, and files of --changes.", rich_help_panel=RUNNING),
]


class Command(help_lists.Command):
    """The command that has no name of its own."""

    def get_usage(self, ctx: Any) -> str:
        return super().get_usage(ctx).replace("  ", " ")


class Group(help_lists.Group):
    """A group with a command that is meant where the first word names no other."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [FOLLOW, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return ("" if name == FOLLOW else name), command, rest


def follow(
    store: StorePath,
    updates: UpdatesOption,
    program: Programs = None,
    format: FormatOption = None,
    batch: BatchOption = None,
    window: WindowOption = None,
    changes: ChangesOption = None,
    changes_format: ChangesFormat = "parquet",
    check: CheckOption = False,
    strict: StrictOption = False,
    output: SaveOption = None,
    log: LogOption = None,
    log_size: LogSizeOption = None,
    device: DeviceOption = "auto",
    policy: PolicyOption = None,
    memory: MemoryOption = None,
    on_disk: OnDiskOption = None,
    threads: Threads = None,
    overwrite: OverwriteOption = False,
    json: Json = False,
) -> None:
    """Follow changes of a graph, and keep the answers of algorithms current.

    The store is not changed. To make changes to try it with: `isthmus stream make-workload --help`.
    """
    from isthmus.cli.commands.follow import Follower, Outputs

    how = {"batch": batch, "window": None if window is None else duration(window), "format": format, "strict": strict}
    outputs = Outputs(changes, changes_format, output, overwrite, json)
    how_far = {"memory": memory, "threads": threads, "device": device, "policy": policy, "on_disk": on_disk}
    with Follower(store, program or None, outputs, log, log_size, **how_far) as follower:
        follower.run(updates, check, how)


def compare(
    store: StorePath,
    updates: UpdatesOption,
    program: Programs = None,
    format: FormatOption = None,
    batch: BatchOption = None,
    window: WindowOption = None,
    device: stream_compare.DeviceOption = "model:rtx2080ti",
    memory: stream_compare.NearOption = "10%",
    policies: stream_compare.PoliciesOption = None,
    threads: Threads = None,
    report: stream_compare.ReportOption = None,
    json: Json = False,
) -> None:
    """Compare recipes of streams on a modelled device or a GPU: what each of them moves for the same changes."""
    how = {"batch": batch, "window": None if window is None else duration(window), "format": format}
    stream_compare.compared(store, updates, program or [], how, device, memory, policies, threads, report, json)


def duration(text: str) -> float:
    """'500ms', '1s', '2m' or a number of seconds."""
    from isthmus.errors import OptionError

    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number) :] or "s"
    try:
        seconds = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise OptionError(f"--window: expected a time such as 1s or 500ms, got {text!r}")
    return seconds


def register(app: typer.Typer) -> None:
    group = typer.Typer(cls=Group, help="Follow changes of a graph, and keep the answers of algorithms current.")

    @group.callback()
    def nothing_first() -> None:
        pass

    group.command(FOLLOW, cls=Command, hidden=True, no_args_is_help=True)(follow)
    group.command("compare", cls=help_lists.Command, no_args_is_help=True)(compare)
    group.command("make-workload", cls=help_lists.Command, no_args_is_help=True)(workload.make_workload)
    app.add_typer(group, name="stream")
