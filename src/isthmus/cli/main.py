"""The `isthmus` command. Errors a user can act on are one line; Ctrl-C cleans up and exits with 130."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Annotated, Any, NoReturn

from isthmus.cli import signals

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own pool keeps some 25 MB that it has freed
if __name__ == "__main__":
    signals.leave_at_once()  # before imports that take a second

import typer

import isthmus
from isthmus.cli import help_lists, verbosity
from isthmus.cli.commands import (
    calibrate,
    compare,
    demo,
    export,
    generate,
    info,
    ingest,
    plan,
    run,
    stream,
    subgraphs,
    verify,
)
from isthmus.cli.suggestions import nearest
from isthmus.errors import IsthmusError
from isthmus.kernels.compile import compile_clock
from isthmus.messages import in_shell

INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    name="isthmus",
    cls=help_lists.Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Graph algorithms when the edges do not fit in fast memory.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
generate.register(app)
ingest.register(app)
info.register(app)
verify.register(app)
export.register(app)
run.register(app)
compare.register(app)
plan.register(app)
subgraphs.register(app)
calibrate.register(app)
stream.register(app)
demo.register(app)


def show_version(given: bool) -> None:
    if given:
        typer.echo(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=verbosity.QUIET)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=verbosity.VERBOSE)] = False,
) -> None:
    verbosity.begin(quiet, verbose)


def main() -> NoReturn:
    compile_clock.OUTSIDE.say = note
    with in_shell():
        run_command()


def run_command() -> NoReturn:
    try:
        signals.listen()
        code = app(standalone_mode=False, prog_name="isthmus")  # what typer.Exit carried, or what the command returned
        if code == INTERRUPTED:  # newer versions of typer return this after Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except BaseException as error:
        signals.leaving = True
        end(error)


def end(error: BaseException) -> NoReturn:
    """End the command after an error, a signal or success."""
    # Typer takes this for Ctrl-D at a prompt; there are none.
    if isinstance(error, typer.Abort) and isinstance(error.__cause__, EOFError):
        raise error.__cause__ from None
    if isinstance(error, KeyboardInterrupt | typer.Abort) or signals.received:
        interrupted(signals.received[0] if signals.received else signal.SIGINT)
    if isinstance(error, IsthmusError):
        stop(str(error), error.exit_code)
    if isinstance(error, OSError):
        stop(f"{error.filename or 'input or output'}: {error.strerror or error}", 1)
    if isinstance(error, MemoryError):
        stop("out of memory; give a smaller --memory", 1)
    gpu = sys.modules.get("isthmus.kernels.compile.cuda_module")
    if gpu is not None and gpu.of_driver(error):
        stop(f"the GPU has failed: {gpu.reason(error)}; start the command again, or use --device cpu", 1)
    if not hasattr(error, "format_message"):
        raise error
    misused(error)


def interrupted(number: int) -> NoReturn:
    """End the command after a signal, at once: the interpreter would take a while to free all memory."""
    if number == signal.SIGINT:
        from isthmus.cli.console import fail

        fail(f"interrupted; {signals.left()}")
    drop_output()
    os._exit(128 + number)


def note(text: str) -> None:
    from isthmus.cli.console import warn

    warn(text)


def misused(error: Any) -> NoReturn:
    """Report a usage error that typer found in the command line."""
    if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
        sys.exit(error.exit_code)
    context = getattr(error, "ctx", None)
    command = context.command_path.strip() if context else "isthmus"
    text = error.format_message().rstrip(".")
    if command == "isthmus ingest" and "unexpected extra argument" in text:  # the shell has expanded a pattern
        stop(
            "ingest: expected one input, got several; to read many files, write a pattern in quotes: 'edges-*.csv'",
            error.exit_code,
        )
    near = nearest(context.command, context, error) if context else None
    what = re.split(r" \(|\.? Did you mean", text)[0]
    stop(f"{what}; did you mean {near}?" if near else f"{text} (see {command} --help)", error.exit_code)


def stop(text: str, code: int) -> NoReturn:
    from isthmus.cli.console import fail

    fail(text)
    drop_output()
    sys.exit(code)


def drop_output() -> None:
    """Flush standard output. If that fails, drop the rest, so that the interpreter does not fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
