"""Results on the shell: which vertices come first, and where results are written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import OptionError

if TYPE_CHECKING:
    from isthmus.runtime.results.result import Result

ENDINGS = (".parquet", ".csv", ".npy")


def check_output(output: Path | None, as_json: bool) -> None:
    """Raise OptionError, before a long run, for a result that cannot be written there."""
    from isthmus.graph.store.files import refuse_address

    if output is None:
        return
    if str(output) == "-":
        if as_json:
            raise OptionError("-o - and --json both write to standard output; give one of them, or -o FILE")
        return
    if output.suffix.lower() not in ENDINGS:
        raise OptionError(f"{output}: expected a name that ends in .parquet, .csv or .npy, or - for standard output")
    if not output.absolute().parent.is_dir():
        refuse_address(output, "a result")
        raise OptionError(f"{output.parent}: no such folder")


def save(result: Result, output: Path) -> None:
    """Write a result to a file, or as text to standard output."""
    if str(output) == "-":
        result.write_csv(sys.stdout.buffer)
        sys.stdout.flush()
    else:
        result.save(output)


def first(result: Result, count: int, ascending: bool) -> list[list[Any]]:
    """The vertices that come first, or the largest groups, as JSON knows them: [[vertex, value], ...]."""
    if result.has_groups:
        return [list(pair) for pair in result.largest(count)]
    return [list(pair) for pair in result.top(count, ascending=ascending)]


def show_first(result: Result, count: int, ascending: bool) -> None:
    """The same as two columns. No name is cut, also where the output is not a terminal."""
    from rich.text import Text

    from isthmus.cli.console import out, plain
    from isthmus.runtime.results.result import shown

    head = (result.group_words[0], "vertices") if result.has_groups else ("vertex", result.main.replace("_", " "))
    rows = [(plain(str(name)), shown(number)) for name, number in first(result, count, ascending)]
    left, right = (max(len(row[at]) for row in [head, *rows]) for at in (0, 1))
    for style, (name, number) in zip(["cyan", *[""] * len(rows)], [head, *rows], strict=True):
        out.print(Text(f"{name.ljust(left)}  {number.rjust(right)}", style), soft_wrap=True)
