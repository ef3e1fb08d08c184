"""How much a command says: `--quiet` and `--verbose`, which every command has, before or after its name.

Results go to standard output; notes, progress, errors and the log of `--verbose` go to standard error. `--quiet` leaves
out all but errors and what was asked for by an option or by the command itself.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer

quiet = False
verbose = False

QUIET = "Say nothing but errors and what was asked for: no progress, no notes, no summary."
VERBOSE = "Log every step on standard error: stages, iterations, what moved."


def begin(be_quiet: bool, be_verbose: bool) -> None:
    """Set the flags given before the command's name; a new command starts with them."""
    global quiet, verbose
    quiet, verbose = be_quiet, be_verbose


def set_quiet(value: bool) -> None:
    global quiet
    quiet = quiet or bool(value)


def set_verbose(value: bool) -> None:
    global verbose
    verbose = verbose or bool(value)


SILENTLY: dict[str, Any] = {"expose_value": False, "show_default": False, "rich_help_panel": "Running"}
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET, callback=set_quiet, **SILENTLY)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE, callback=set_verbose, **SILENTLY)]


@cache
def options() -> list[Any]:
    """The two options of every command. No command gets their values: reading them is all there is to do."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def none(quiet: Quiet = False, verbose: Verbose = False) -> None:
        pass

    return list(typer.main.get_command(app).params)
