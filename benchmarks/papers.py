"""The papers' experiments on modelled devices: our table beside the published one.

    python benchmarks/papers.py [--only hytgraph-table5 ...] [--graphs rmat20 ...] [--scale 17] [--into docs/papers.md]
    python benchmarks/papers.py --smoke          everything, on graphs that take seconds

`--graphs` are those of the large tables, `--scale` is that of the RMAT graphs on which single things are varied. Real
graphs are found as in `recipes.py`; where they are absent, that is said. Prints Markdown; a judged line ends in met or
MISSED. `--into` puts every table behind its mark in a file, in place of what was there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from harness import table
from published import cases, causes, grapin, grapin_figures, grus, hytgraph, motives, scaph, systems
from published.lab import Lab, Section

MODULES = (hytgraph, causes, scaph, grus, motives, systems, grapin, grapin_figures)
EXPERIMENTS = {name: run for module in MODULES for name, run in module.EXPERIMENTS.items()}
GRAPHS = (*cases.REAL, "rmat18", "grid400")
SMOKE = ("rmat11", "grid40")
SCALE, SMOKE_SCALE = 17, 10


def written(name: str, section: Section) -> str:
    judged = "\n".join(f"- {what}: {'met' if met else 'MISSED'}" for what, met in section.judged)
    command = f"`python benchmarks/papers.py --only {name}`"
    return "\n\n".join(
        part for part in (f"## {section.title}", command, table(section.rows), *section.text, judged) if part
    )


def run(lab: Lab, names: list[str], into: Path | None) -> None:
    """Print what experiments found; how long each took goes to the error stream."""
    for reason in lab.skipped:
        print(f"Skipped: {reason}\n")
    for name in names:
        start = time.perf_counter()
        text = written(name, EXPERIMENTS[name](lab))
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        print(text + "\n", flush=True)
        if into is not None:
            into.write_text(replaced(into.read_text(), name, text))


def replaced(page: str, name: str, text: str) -> str:
    """The page with what stands behind the experiment's mark, up to the next one, replaced."""
    mark = f"<!-- {name} -->\n"
    before, found, after = page.partition(mark)
    if not found:
        raise SystemExit(f"expected a line {mark.strip()} in the page")
    rest = after.find("<!-- ")
    return f"{before}{mark}\n{text}\n" + (f"\n{after[rest:]}" if rest >= 0 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--graphs", nargs="*")
    parser.add_argument("--scale", type=int)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    names = options.graphs if options.graphs is not None else SMOKE if options.smoke else GRAPHS
    scale = options.scale or (SMOKE_SCALE if options.smoke else SCALE)
    with tempfile.TemporaryDirectory() as folder:
        run(Lab(Path(folder), names, scale), options.only, options.into)


if __name__ == "__main__":
    main()
