"""Mutation tests: change one operator, number or word of the source, and see whether the tests notice.

    python tests/mutants.py                      every entry of tests/mutants.toml, in less than an hour
    python tests/mutants.py policies/grus_policy.py     one entry
    python tests/mutants.py graph/lists.py --only 4,17
    python tests/mutants.py --seed 2             other mutants

Needs the extras `test` and `mutation`. Mutants are cosmic-ray's, drawn with a fixed seed, without those that change an
annotation, that do not compile or that compile to the same code. They are made in a copy of the project. A mutant is
caught if a test fails, crashes or takes ten times the processor time. Each one's tests run in a fork of a process that
has imported the large packages and nothing of Isthmus, which saves a second. docs/testing.md has the outcome.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = Path("src") / "isthmus"
CONFIG = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())
LARGE = ("hypothesis", "numba", "numpy", "pyarrow", "pytest", "scipy.sparse")
FEWEST_SECONDS = 20.0  # of processor time before a mutant counts as endless


@dataclass(frozen=True)
class Mutant:
    """A file with one change in it."""

    path: Path
    before: str
    after: str

    @property
    def change(self) -> str:
        """The file, the line and what it becomes, as text for people."""
        old, new = self.before.splitlines(), self.after.splitlines()
        changes = (change for change in difflib.SequenceMatcher(None, old, new).get_opcodes() if change[0] != "equal")
        _, begin, end, *others = next(changes)
        was, becomes = (" ".join(line.strip() for line in lines) for lines in (old[begin:end], new[slice(*others)]))
        return f"{self.path.relative_to(SOURCE)}:{begin + 1}: {was}  ->  {becomes or '(removed)'}"


def drawn(entry: str, most: int, seed: int) -> tuple[list[Mutant], int]:
    """(`most` mutants of an entry, or all if there are fewer, in an order that only seed and texts decide; places to
    change).
    """
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    whole = ROOT / SOURCE / entry
    places = []
    for path in sorted(whole.glob("*.py")) if whole.is_dir() else [whole]:
        text = path.read_text()
        nodes, skipped = list(ast_nodes(get_ast(text))), annotations(text)
        for name in sorted(plugins.operator_names()):
            kind = plugins.get_operator(name)
            begins = (
                [] if kind.arguments() else [begin for node in nodes for begin, _ in kind().mutation_positions(node)]
            )
            places += [
                (path, text, kind, occurrence)
                for occurrence, begin in enumerate(begins)
                if not any(first <= begin < last for first, last in skipped)
            ]
    random.Random(f"{seed} {entry}").shuffle(places)
    found: list[Mutant] = []
    seen: set[str] = set()
    for path, text, kind, occurrence in places:
        changed = mutate_code(text, kind(), occurrence)
        code = compiled(changed)
        if code and code != compiled(text) and code not in seen:
            seen.add(code)
            found.append(Mutant(path.relative_to(ROOT), text, changed))
        if len(found) == most:
            break
    return found, len(places)


def compiled(text: str) -> str:
    """A source text without comments and layout; empty if it does not compile."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "mutant", "exec", dont_inherit=True)
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return ""


def annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations begin and end, as (line, column). Nothing runs them."""
    found = []
    for node in ast.walk(ast.parse(text)):
        for field in ("annotation", "returns"):
            part = getattr(node, field, None)
            if part is not None:
                found.append(((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)))
    return found


def tests_fail(copy: Path, entry: str, seconds: int, keep_bytecode: bool = False) -> bool:
    """Whether a test of this entry fails in the copy, in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(copy, entry, seconds, keep_bytecode))
    process.start()
    process.join()
    return process.exitcode != 0


def run_tests(copy: Path, entry: str, seconds: int, keep_bytecode: bool) -> None:
    import numba
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    sys.dont_write_bytecode = not keep_bytecode
    os.chdir(copy)
    sys.path[0:1] = [str(copy), str(copy / "src")]
    numba.config.DISABLE_JIT = entry in CONFIG["settings"]["interpreted"]
    log = os.open(copy / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--timeout=60",
        "--hypothesis-profile=mutants",
        "-k",
        CONFIG["settings"]["tests"],
    ]
    os._exit(pytest.main([*options, *(f"tests/{name}" for name in CONFIG["tests"][entry])]))


def prepare() -> None:
    """Import what every mutant needs; properties are tried with the same examples for each, and failures are not made
    smaller.
    """
    for name in LARGE:
        importlib.import_module(name)
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutants", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
    )


def try_entry(copy: Path, entry: str, seed: int, only: set[int]) -> tuple[int, int]:
    """(mutants tried, mutants caught), with a line for each that is not caught."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if tests_fail(copy, entry, resource.RLIM_INFINITY, keep_bytecode=True):
        raise SystemExit(f"{entry}: its tests fail without a mutation:\n{(copy / 'log').read_text()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = int(max(FEWEST_SECONDS, 10 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)))
    mutants, places = drawn(entry, CONFIG["most"], seed)
    chosen = [(number, mutant) for number, mutant in enumerate(mutants) if not only or number in only]
    caught = 0
    for number, mutant in chosen:
        path = copy / mutant.path
        path.write_text(mutant.after)
        for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            old.unlink()
        if tests_fail(copy, entry, seconds):
            caught += 1
        else:
            print(f"  survives: {number} {mutant.change}", flush=True)
        path.write_text(mutant.before)
    print(f"{entry}: {places} places, {len(chosen)} mutants tried, {caught} caught", flush=True)
    return len(chosen), caught


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="*", help="entries of tests/mutants.toml; without any, all of them")
    parser.add_argument("--only", default="", help="numbers of mutants, as printed for those that survive: 4,17")
    parser.add_argument("--seed", type=int, default=CONFIG["seed"], help="of the draw")
    given = parser.parse_args()
    if unknown := set(given.entries) - set(CONFIG["tests"]):
        parser.error(f"not in tests/mutants.toml: {', '.join(sorted(unknown))}")
    prepare()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        only = {int(number) for number in given.only.split(",") if number}
        counts = [try_entry(copy, entry, given.seed, only) for entry in given.entries or CONFIG["tests"]]
    tried, caught = (sum(column) for column in zip(*counts, strict=True))
    print(f"all: {tried} tried, {caught} caught ({100 * caught / max(tried, 1):.0f} %)")


if __name__ == "__main__":
    main()
