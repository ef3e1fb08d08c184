"""The reference of the shell: every command with its usage, arguments and options, from the declarations that `--help`
prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.cli.help_lists import LISTS

HEAD = """# Shell commands

`isthmus COMMAND --help` prints what this page shows. [Everyday jobs](../jobs.md#the-shell) describes output, colours
and completion;
[README](../../README.md#from-the-shell) lists the exit codes.

"""
# Stands for all algorithms in groups that have a command for each: their other options are the same.
ONE_OF_MANY = "bfs"
BAR = "\\|"  # in a table
EVERYWHERE = ("help", "quiet", "verbose")  # options of every command


def page() -> str:
    """The page as Markdown."""
    from typer.main import get_command

    from isthmus.cli.main import app

    return HEAD + "".join(sections(get_command(app), None, "isthmus"))


def sections(command: Any, parent: Any, name: str) -> Iterator[str]:
    """The section of a command, and those of the commands below it."""
    context = command.make_context(name.split()[-1], [], parent=parent, resilient_parsing=True)
    subcommands = command.list_commands(context) if hasattr(command, "list_commands") else []
    yield section(command, context, name)
    if ONE_OF_MANY in subcommands:
        names = ", ".join(f"[`{each}`](../algorithms.md#{each})" for each in subcommands)
        yield (
            f"`ALGORITHM` is one of {names}. Its own options come first; they are those of [the "
            f"function](algorithms.md). For `bfs`:\n\n"
        )
        subcommands = [ONE_OF_MANY]
    for each in subcommands:
        below = command.get_command(context, each)
        if below is not None and not getattr(below, "hidden", False):
            yield from sections(below, context, f"{name} {each}")


def section(command: Any, context: Any, name: str) -> str:
    """Heading, usage, words, and a table of arguments and options."""
    show_lists(command)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    words = (command.help or "").replace("\f", "").strip()
    rows = [row(parameter, context) for parameter in command.get_params(context) if shown(parameter)]
    table = "".join(["| | |\n|---|---|\n", *rows, "\n"]) if rows else ""
    return f"## {name}\n\n```text\n{usage}\n```\n\n{words}\n\n{table}"


def show_lists(command: Any) -> None:
    """Fill in the lists of recipes and formats, as `--help` does."""
    for parameter in command.params:
        for mark, make in LISTS.items():
            if mark in (getattr(parameter, "help", None) or ""):
                parameter.help = parameter.help.replace(mark, make())


def shown(parameter: Any) -> bool:
    return parameter.name not in EVERYWHERE and not getattr(parameter, "hidden", False)


def row(parameter: Any, context: Any) -> str:
    """A row of the table: how it is written, and what `--help` says about it."""
    name, words = parameter.get_help_record(context) or (parameter.name.upper(), "")
    return f"| `{name.replace('|', BAR)}` | {escaped(words)} |\n"


def escaped(words: str) -> str:
    """Help as a cell of a table."""
    return " ".join(words.split()).replace("|", BAR).replace("[", "\\[").replace("<", "&lt;")
