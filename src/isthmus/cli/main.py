"""The `isthmus` command. Errors a user can act on are one line; Ctrl-C cleans up and exits with 130."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

import isthmus
from isthmus.cli import graphs
from isthmus.errors import IsthmusError

app = typer.Typer(
    name="isthmus", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Graph algorithms when the edges do not fit in fast memory.", context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
graphs.register(app)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isthmus {isthmus.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


def terminate(number: int, frame: object) -> None:
    """A polite kill unwinds the stack, so that temporary files go away."""
    raise SystemExit(128 + number)


def main() -> None:
    signal.signal(signal.SIGTERM, terminate)
    try:
        app(standalone_mode=False)
    except IsthmusError as error:
        stop(str(error), error.exit_code)
    except KeyboardInterrupt:
        stop("interrupted; nothing was changed", 130)
    except typer.Abort:
        stop("interrupted; nothing was changed", 130)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        stop(f"{error.filename or 'I/O'}: {error.strerror or error}", 1)
    except MemoryError:
        stop("out of memory; give a smaller --memory", 1)
    except Exception as error:
        if type(error).__module__.startswith(("click", "typer")) and hasattr(error, "exit_code"):
            error.show()  # type: ignore[attr-defined]
            sys.exit(error.exit_code)
        raise


def stop(text: str, code: int) -> None:
    from isthmus.cli.console import fail

    fail(text)
    sys.exit(code)


if __name__ == "__main__":
    main()
