"""`isthmus run ALGORITHM STORE`. An algorithm's own options change the answer; the shared options change only the
speed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli import help_lists, signals
from isthmus.cli.algorithms import Given, group, names, read
from isthmus.cli.shared_options import Ascending, Json, ResultOutput, StorePath, Threads, Top

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm

Budget = Annotated[
    str | None,
    typer.Option(
        help="Near memory: 2GB, or 10% for vertex state plus that share of the edges. Default: 60 % of the "
        "available memory."
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        metavar="RECIPE",
        help=f"How edges are brought into near memory: {help_lists.RECIPES}.",
        autocompletion=help_lists.recipes_beginning,
    ),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda:NUMBER, or model:NAME for a modelled GPU.")]
WithoutOption = Annotated[
    str | None,
    typer.Option(metavar="PART,PART...", help="Parts of a recipe to switch off, such as cache. Answers stay the same."),
]
ReportOption = Annotated[Path | None, typer.Option(help="Write an HTML report of the run: NAME.html.")]
VerifyOption = Annotated[
    bool, typer.Option("--verify/--no-verify", help="Compare every block of edges that is read with its checksum.")
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for checkpoints; the same command, run again, resumes from the last one."),
]
EveryOption = Annotated[float, typer.Option(metavar="MINUTES", min=0, help="Minutes between two checkpoints.")]
RestartOption = Annotated[bool, typer.Option("--restart", help="Remove existing checkpoints and start over.")]


def shared(
    store: StorePath,
    memory: Budget = None,
    policy: PolicyOption = "auto",
    without: WithoutOption = None,
    device: DeviceOption = "auto",
    threads: Threads = None,
    verify: VerifyOption = True,
    output: ResultOutput = None,
    top: Top = 0,
    ascending: Ascending = False,
    report: ReportOption = None,
    checkpoint: CheckpointOption = None,
    checkpoint_every: EveryOption = 5.0,
    restart: RestartOption = False,
    json: Json = False,
) -> None:
    """The options of every algorithm, as a signature."""


def act(
    algorithm: Algorithm,
    given: Given,
    store: Path,
    memory: str | None,
    policy: str,
    without: str | None,
    device: str,
    threads: int | None,
    verify: bool,
    output: Path | None,
    top: int,
    ascending: bool,
    report: Path | None,
    checkpoint: Path | None,
    checkpoint_every: float,
    restart: bool,
    json: bool,
) -> None:
    from isthmus.cli.console import Watch, show_json, summary, warn
    from isthmus.cli.outputs import check_output, first, save, show_first
    from isthmus.devices.choose import device_named
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.checkpoint.checkpoint import clear
    from isthmus.runtime.public import function_of
    from isthmus.runtime.trace.provenance import from_shell

    check_output(output, json)
    if report is not None:
        from isthmus.report import page

        page.check(report)
    device_named(device)  # refuse a device that cannot be used before anything is printed about the run
    graph = open_graph(store)
    if checkpoint is not None:
        signals.checkpoints.append(checkpoint)
    with Watch(algorithm.name) as watch, from_shell(sys.argv[1:]):
        result = function_of(algorithm)(
            graph,
            **read(algorithm, given, graph),
            memory=memory,
            policy=policy,
            without=names(without),
            device=device,
            threads=threads,
            verify=verify,
            watch=watch.seen,
            say=watch.say,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            restart=restart,
            keep_checkpoint=True,
        )
    if output is not None:
        save(result, output)
    if report is not None:
        result.report(report)
    if checkpoint is not None:
        clear(checkpoint)  # only after the result is saved
    if json:
        show_json({**result.summary(), "top": first(result, top, ascending)} if top else result.summary())
        return
    found, piped = result.summary(), str(output) == "-"
    written = [("written", str(path)) for path in (output, report) if path is not None and str(path) != "-"]
    summary(f"{found['algorithm']} on {store}, {found['policy']}", result.describe() + written, error=piped)
    if top:
        show_first(result, top, ascending)
    for note in result.trace.notes:
        warn(note)


def register(app: typer.Typer) -> None:
    app.add_typer(group("Run an algorithm on a store.", shared, act), name="run")
