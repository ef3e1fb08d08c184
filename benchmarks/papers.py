"""The papers' experiments on modelled devices: our table beside the published one.

    python benchmarks/papers.py [--only hytgraph-table5 ...] [--graphs rmat20 ...] [--scale 18] [--output docs/papers.md]
    python benchmarks/papers.py --smoke          everything, on graphs that take seconds

`--graphs` are those of the large tables, `--scale` is that of the RMAT graphs on which single things are varied. Real graphs
are found as in `recipes.py`; where they are absent, that is said. Prints Markdown; a judged line ends in met or MISSED.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from harness import table
from published import cases, grus, hytgraph, scaph
from published.lab import Lab, Section

EXPERIMENTS = {**hytgraph.EXPERIMENTS, **scaph.EXPERIMENTS, **grus.EXPERIMENTS}
GRAPHS = (*cases.REAL, "rmat20", "rmat22", "grid400")
SMOKE = ("rmat11", "grid40")
SCALE, SMOKE_SCALE = 18, 10


def written(section: Section) -> str:
    judged = "\n".join(f"- {what}: {'met' if met else 'MISSED'}" for what, met in section.judged)
    return "\n\n".join(part for part in (f"## {section.title}", table(section.rows), *section.text, judged) if part)


def run(lab: Lab, names: list[str]) -> list[tuple[str, Section]]:
    found = []
    for name in names:
        start = time.perf_counter()
        section = EXPERIMENTS[name](lab)
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        print(written(section) + "\n", flush=True)
        found.append((name, section))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--graphs", nargs="*")
    parser.add_argument("--scale", type=int)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    names = options.graphs if options.graphs is not None else SMOKE if options.smoke else GRAPHS
    scale = options.scale or (SMOKE_SCALE if options.smoke else SCALE)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), names, scale)
        for reason in lab.skipped:
            print(f"Skipped: {reason}\n")
        run(lab, options.only)


if __name__ == "__main__":
    main()
