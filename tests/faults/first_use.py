"""First use by several threads: in a fresh process, THREADS threads call `sssp` at the same moment, and all get the
right answer.

    python -m tests.faults.first_use --processes 100

The first call makes the program's module and loads its machine code; nobody may see half of either.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable

THREADS = 6
LIMIT = 300  # seconds for a process; the first may have to compile
CODE = """
import sys
import threading

import isthmus as ist

count = int(sys.argv[1])
graph, gate, found = ist.read(([0, 1, 2, 0], [1, 2, 3, 3], [5, 3, 9, 40])), threading.Barrier(count), []


def use():
    gate.wait()
    found.append(ist.sssp(graph, 0).values.tolist())


threads = [threading.Thread(target=use) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [[0, 5, 8, 17]] * count, found
"""


def run(processes: int, say: Callable[[str], None] = print) -> int:
    """Returns how many processes failed; what they printed is told by `say`."""
    failed = 0
    for number in range(processes):
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(THREADS)], capture_output=True, text=True, timeout=LIMIT, check=False
        )
        if done.returncode:
            failed += 1
            say(f"process {number}: exit code {done.returncode}: {done.stderr}")
    say(f"{processes} processes with {THREADS} threads: {failed} failed")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--processes", type=int, default=100)
    return 1 if run(parser.parse_args().processes) else 0


if __name__ == "__main__":
    sys.exit(main())
