"""`isthmus run ALGORITHM STORE`. An algorithm's own options change the answer; options of a run only the speed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from isthmus.cli import signals
from isthmus.cli.algorithms import AlgorithmCall, group
from isthmus.cli.shared_options import Ascending, Json, ResultOutput, StorePath, Top
from isthmus.runtime.options import RunOptions

if TYPE_CHECKING:
    from isthmus.runtime.results.result import Result

ReportOption = Annotated[Path | None, typer.Option(help="Write an HTML report of the run: NAME.html.")]


@dataclass
class Outputs:
    """The files that a run writes, and the output that it shows."""

    output: ResultOutput = None
    top: Top = 0
    ascending: Ascending = False
    report: ReportOption = None
    json: Json = False

    def check(self) -> None:
        """Raise an error now for a file that could not be written at the end."""
        from isthmus.cli.outputs import check_output

        check_output(self.output, self.json)
        if self.report is not None:
            from isthmus.report import page

            page.check(self.report)

    def write(self, result: Result) -> None:
        from isthmus.cli.outputs import save

        if self.output is not None:
            save(result, self.output)
        if self.report is not None:
            result.report(self.report)

    def show(self, result: Result, store: Path) -> None:
        from isthmus.cli.console import show_json, summary, warn
        from isthmus.cli.outputs import first, show_first

        found, files = result.summary(), [str(path) for path in (self.output, self.report) if path is not None]
        if self.json:
            show_json({**found, "top": first(result, self.top, self.ascending)} if self.top else found)
            return
        rows = result.describe() + [("written", path) for path in files if path != "-"]
        summary(f"{found['algorithm']} on {store}, {found['policy']}", rows, error="-" in files)
        if self.top:
            show_first(result, self.top, self.ascending)
        for note in result.trace.notes:
            warn(note)


def run(call: AlgorithmCall, store: StorePath, outputs: Outputs, **options: Unpack[RunOptions]) -> None:
    from isthmus.cli.console import Watch
    from isthmus.devices.choose import device_named
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.checkpoint.checkpoint import clear
    from isthmus.runtime.trace.provenance import from_shell

    outputs.check()
    device_named(options["device"])  # refuse a device that cannot be used before anything is printed about the run
    graph, folder = open_graph(store), options["checkpoint"]
    if folder is not None:
        signals.checkpoints.append(Path(folder))
    with Watch(call.name) as watch, from_shell(sys.argv[1:]):
        given = call.arguments(graph)
        result = call.function(graph, **given, **options, watch=watch.seen, say=watch.say, keep_checkpoint=True)
    outputs.write(result)
    if folder is not None:
        clear(Path(folder))  # only after the result is saved
    outputs.show(result, store)


def register(app: typer.Typer) -> None:
    app.add_typer(group("Run an algorithm on a store.", run), name="run")
