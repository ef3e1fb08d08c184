"""The memory promise: random commands with budgets near the least, none of which may use more than the budget and 250
MB.

    python -m tests.faults.memory --runs 60 --seed 1

Every command is a process of its own, whose peak of resident memory the system tells. The least budget of a command is
what its own error message advises, so that advice is tested as well.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.processes import COMMAND

BESIDE = 250e6  # bytes for interpreter, libraries, compiled code and output buffers
LIMIT = 300  # seconds for a command
RECIPES = ("auto", "filter", "emogi", "subway", "unified", "grus", "hytgraph", "scaph")
OUTPUTS = (None, "parquet", "csv", "npy")
WEIGHTED, SOURCED = (
    {"sssp", "widest_path", "minimum_spanning_forest"},
    {"bfs", "sssp", "widest_path", "php", "personalized_pagerank"},
)
ALGORITHMS = (
    "bfs",
    "sssp",
    "weakly_connected_components",
    "pagerank",
    "core_number",
    "label_propagation",
    "strongly_connected_components",
    "minimum_spanning_forest",
    "katz",
    "php",
    "personalized_pagerank",
    "triangle_count",
    "widest_path",
    "local_clustering_coefficient",
)
LENGTH = 2000  # bytes of a long id


@dataclass
class Sizes:
    """Vertices of each graph."""

    isolated: int = 16_000_000
    star: int = 2_000_000
    path: int = 100_000
    names: int = 40_000


SMALL = Sizes(1_000_000, 200_000, 5_000, 2_000)


@dataclass
class Outcome:
    code: int
    peak: int  # bytes
    printed: str


# A process starts with the peak of the one that it was forked from, which may be a large one. So a small one starts the
# command.
MEASURING = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:], stderr=subprocess.STDOUT)
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
open(sys.argv[1], "w").write(f"{child.returncode} {usage.ru_maxrss}")
"""


def measured(words: list[str], folder: Path) -> Outcome:
    """Run a command and measure its peak of memory."""
    with tempfile.NamedTemporaryFile("r", dir=folder) as outcome:
        command = [sys.executable, "-I", "-S", "-c", MEASURING, outcome.name, *COMMAND, *words]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
        )
        code, peak = outcome.read().split()
        return Outcome(int(code), int(peak) * 1024, done.stdout)


def long_name(number: int) -> str:
    return f"{number:08}" + "x" * (LENGTH - 8)


def write_names(path: Path, count: int) -> None:
    """A text file of edges between vertices with long ids."""
    chance = random.Random(1)
    with path.open("w") as file:
        for k in range(count):
            file.write(f"{long_name(k)} {long_name(chance.randrange(count))}\n")


def build(folder: Path, sizes: Sizes) -> dict[str, str]:
    """Make the graphs; returns a source for each."""
    weights = ["--weights", "1:9"]
    shapes = {
        "isolated": ["uniform", "--vertices", str(sizes.isolated), "--edges", "1000"],
        "star": ["star", "--vertices", str(sizes.star), *weights],
        "directed": ["star", "--vertices", str(sizes.star), "--directed", *weights],
        "hub": ["star", "--vertices", str(sizes.star), "--order", "hub"],
        "path": ["path", "--vertices", str(sizes.path), *weights],
    }
    for name, words in shapes.items():
        outcome = measured(["generate", *words, "-o", f"{name}.isthmus"], folder)
        assert outcome.code == 0, outcome.printed
    write_names(folder / "names.txt", sizes.names)
    outcome = measured(["ingest", "names.txt", "--ids", "string", "-o", "names.isthmus", "--memory", "200MB"], folder)
    assert outcome.code == 0, outcome.printed
    return {**dict.fromkeys(shapes, "0"), "path": str(sizes.path - 50), "names": long_name(0)}


def draw(chance: random.Random, sources: dict[str, str]) -> list[str]:
    """A command without its budget."""
    if chance.random() < 0.1:
        return ["ingest", "names.txt", "--ids", "string", "-o", "again.isthmus", "--overwrite"]
    algorithm, graph, output = chance.choice(ALGORITHMS), chance.choice(list(sources)), chance.choice(OUTPUTS)
    words = ["run", algorithm, f"{graph}.isthmus", "--policy", chance.choice(RECIPES)]
    if algorithm in SOURCED:
        words += ["--source", sources[graph]]
    if algorithm == "katz":
        words += ["--alpha", "1e-7"]  # small enough for the star
    if algorithm == "label_propagation":
        words += ["--max-iter", "2"]
    return [*words, *([] if output is None else ["-o", f"out.{output}"])]


def least_budget(words: list[str], folder: Path) -> int | None:
    """Megabytes that the command asks for when it has too little; None if it fails for another reason."""
    advice = re.search(r"--memory (\d+)MB", measured([*words, "--memory", "10kB"], folder).printed)
    return int(advice[1]) if advice else None


def campaign(runs: int, seed: int, folder: Path, sizes: Sizes) -> list[str]:
    """All commands that used too much, or failed with the budget that they had asked for."""
    chance, found, done = random.Random(seed), [], 0
    sources = build(folder, sizes)
    while done < runs:
        words = draw(chance, sources)
        least = least_budget(words, folder)
        if least is None:
            continue
        done += 1
        megabytes = round(least * chance.choice((1, 1, 1.05, 1.3)))
        outcome = measured([*words, "--memory", f"{megabytes}MB"], folder)
        peak = outcome.peak / 1e6
        shown = f"{' '.join(words)[:150]} --memory {megabytes}MB: {peak:.0f} MB, budget + {peak - megabytes:.0f} MB"
        print(shown, flush=True)
        if outcome.code:
            found.append(f"{shown}; failed: {outcome.printed[-300:]}")
        elif outcome.peak > megabytes * 1e6 + BESIDE:
            found.append(f"{shown}; too much")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small graphs, for a quick look")
    parser.add_argument("--folder", type=Path, help="where the graphs go; default: a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = campaign(given.runs, given.seed, Path(folder), SMALL if given.small else Sizes())
    print(*found, sep="\n")
    print(f"{given.runs} runs, {len(found)} problems")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
