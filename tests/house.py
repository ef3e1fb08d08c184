"""Counts about the code, to compare two versions by: sizes, names, questions about places, how far tests reach inside.

    python -m tests.house [--src DIR] [--list]      # the counts of a tree, of which DIR is the folder src
    python -m tests.house --calls [--src DIR]       # how many functions one iteration of a search from disk calls
    python -m tests.house --imports [--src DIR]     # modules for GPUs that a search on the processor loads

With --list it also says where. Files are read with `ast` and `re` and are not imported, so any version can be counted.
"Outside kernels" means that no folder of the path is named kernels. `house_rules.py` has the rule of every count,
`house_runs.py` that of --calls and --imports.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Iterable
from pathlib import Path

from tests import house_rules as rules
from tests import house_runs as runs

SOURCE = Path(__file__).parent.parent / "src"
AROUND = ("src", "tests", "benchmarks", "examples", "docs")  # folders that "everywhere" means
LONGEST = 5  # functions that are named


def counts(src: Path) -> Iterable[tuple[str, int, list[str]]]:
    """(what is counted, how many, where) of a tree."""
    files = rules.parsed(src)
    outside = [file for file in files if "kernels" not in file.path.parts]
    yield "source files", len(files), []
    yield "source lines", sum(len(file.lines) for file in files), []
    twice, crowded = rules.basenames(files), rules.crowded(files)
    yield "file names that stand twice or more", len(twice), twice
    yield f"folders with more than {rules.CROWD} files", len(crowded), crowded
    yield from places(files)
    functions = [function for file in outside for function in rules.functions(file)]
    wide = [f"{each.where}, {each.parameters}" for each in functions if each.parameters > rules.PARAMETERS]
    yield f"functions with more than {rules.PARAMETERS} parameters, outside kernels", len(wide), wide
    tangled = sorted(
        (each for each in functions if each.complexity > rules.COMPLEXITY), key=lambda each: -each.complexity
    )
    where = [f"{each.where}, {each.complexity}" for each in tangled]
    yield f"functions of complexity above {rules.COMPLEXITY}, outside kernels", len(tangled), where
    longest = sorted(functions, key=lambda each: -each.lines)[:LONGEST]
    yield (
        "lines of the longest function, outside kernels",
        longest[0].lines,
        [f"{each.where}, {each.lines}" for each in longest],
    )
    yield "`fmt: skip` in src", rules.occurrences(src, rules.UNFORMATTED), []
    yield "`fmt: skip` everywhere", sum(rules.occurrences(src.parent / name, rules.UNFORMATTED) for name in AROUND), []
    yield from of_tests(src.parent / "tests")
    words = rules.metaphors(files)
    shown = [f"{word}: {len(names)} names, {names.total()} uses" for word, names in words.items() if names]
    yield "words of metaphor in names", len(shown), shown
    yield "different names with one", len(set().union(*words.values())), []
    yield "uses of such names", sum(names.total() for names in words.values()), []


def places(files: list[rules.File]) -> Iterable[tuple[str, int, list[str]]]:
    """Questions about places: all of them, by kind, and outside devices/."""
    nones, kinds = rules.none_tests(files, rules.PLACES), rules.place_classes(files)
    outside = [where for where in (*nones, *kinds) if "devices/" not in where]
    yield "questions about places", len(nones) + len(kinds), []
    yield f"- {', '.join(rules.PLACES)} `is None`", len(nones), files_of(nones)
    yield "- isinstance on a class of one place", len(kinds), files_of(kinds)
    yield "- of these in devices/", len(nones) + len(kinds) - len(outside), []
    yield "- of these outside devices/", len(outside), files_of(outside)
    more = rules.none_tests(files, rules.MORE_PLACES)
    yield f"further: {', '.join(rules.MORE_PLACES)} `is None`", len(more), files_of(more)


def of_tests(tests: Path) -> Iterable[tuple[str, int, list[str]]]:
    private = rules.private(rules.parsed(tests))
    yield "test files", len(list(tests.rglob("*.py"))), []
    yield f"`{rules.PATCHED}` in tests", rules.occurrences(tests, rules.PATCHED), []
    yield "accesses to private attributes in tests", len(private), []
    others = [where for own, where in private if not own]
    yield "- of these not of self", len(others), files_of(others)


def files_of(places: Iterable[str]) -> list[str]:
    """How often each file occurs, the most frequent first."""
    found = collections.Counter(place.split(":")[0] for place in places)
    return [f"{path}, {count}" for path, count in found.most_common()]


def table(rows: Iterable[tuple[str, int, list[str]]], listed: bool) -> str:
    lines = []
    for what, count, where in rows:
        lines.append(f"{what:<76} {count:>8,}")
        if listed:
            lines += [f"      {each}" for each in where]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=SOURCE, help="the folder src of a tree; default: this one's")
    parser.add_argument("--list", action="store_true", help="also where")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--calls", action="store_true", help="calls of one iteration and of the rest of a run")
    way.add_argument("--imports", action="store_true", help="modules for GPUs that are loaded")
    options = parser.parse_args()
    src = options.src.resolve()
    if not (src / "isthmus").is_dir():
        parser.error(f"expected a folder that holds the package isthmus, got {src}")
    if options.calls:
        print(table(runs.calls(src), options.list))
    elif options.imports:
        print(table(runs.imports(src), True))
    else:
        print(table(counts(src), options.list))


if __name__ == "__main__":
    main()
