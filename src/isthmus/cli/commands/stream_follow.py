"""`isthmus stream STORE`: follow updates, and keep answers current."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.shared_options import RUNNING, Json, StorePath, Threads
from isthmus.cli.stream_updates import Updates
from isthmus.errors import OptionError, StoreError

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


@dataclass
class Outputs:
    """The files that a stream writes, and whether it prints JSON."""

    changes: ChangesOption = None
    changes_format: ChangesFormat = "parquet"
    output: SaveOption = None
    overwrite: OverwriteOption = False
    json: Json = False
    written: list[str] = field(default_factory=list, init=False)

    def check(self, resumes: bool) -> None:
        """Raise an error now for a file that could not be written later."""
        if self.changes_format not in ("parquet", "csv"):
            raise OptionError(f"--changes-format: expected parquet or csv, got {self.changes_format!r}")
        if self.output is not None:
            self._check_store(self.output)
        if self.changes is not None:
            self._prepare_changes(self.changes, resumes)

    def _check_store(self, path: Path) -> None:
        from isthmus.graph.store.files import refuse_address
        from isthmus.graph.store.store import SUFFIX

        refuse_address(path, "a store")
        if path.suffix != SUFFIX:
            raise OptionError(f"{path}: expected a name that ends in {SUFFIX}")
        if not path.absolute().parent.is_dir():
            raise OptionError(f"{path.parent}: no such folder")
        if path.exists() and not self.overwrite:
            raise StoreError(f"{path}: exists already; --overwrite replaces it")

    def _prepare_changes(self, folder: Path, resumes: bool) -> None:
        """Make the folder of changes. A stream that resumes adds to its files; another one replaces them."""
        from isthmus.graph.store.files import refuse_address

        refuse_address(folder, "a folder of changes")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            old = [path for path in folder.iterdir() if path.name.startswith("batch-")]
        except OSError as error:
            raise StoreError(f"{folder}: cannot write changes here: {error.strerror or error}") from error
        if resumes:
            return
        if old and not self.overwrite:
            raise StoreError(
                f"{folder}: has changes of another stream, such as {old[0].name}; --overwrite replaces them"
            )
        for path in old:
            path.unlink()


@dataclass
class StreamOptions:
    """Options of a stream, as `isthmus.stream` takes them."""

    log: LogOption = None
    log_size: LogSizeOption = None
    device: DeviceOption = "auto"
    policy: PolicyOption = None
    memory: MemoryOption = None
    on_disk: OnDiskOption = None
    threads: Threads = None


def follow(
    store: StorePath,
    updates: Updates,
    outputs: Outputs,
    options: StreamOptions,
    check: CheckOption = False,
    strict: StrictOption = False,
) -> None:
    """Follow changes of a graph, and keep the answers of algorithms current.

    The store is not changed. To make changes to try it with: `isthmus stream make-workload --help`.
    """
    from isthmus.cli.follower import Follower

    reading = {**updates.reading(), "strict": strict}
    with Follower(store, updates.program or None, outputs, options) as follower:
        follower.run(updates.updates, check, reading)
