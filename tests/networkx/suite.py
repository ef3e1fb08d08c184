"""Run NetworkX's own tests on the backend, count, and list what did not run and why. Not a pytest file: `make networkx`
calls it.

    python -m tests.networkx.suite [algorithms/tests/test_core.py ...]

Without files it runs all of them, which takes about 40 minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import networkx

ROOT = Path(__file__).parent.parent.parent
PLACE = Path(networkx.__file__).parent


@dataclass
class Counts:
    """How NetworkX's tests ended. `called`: the tests that called each function of the backend; `refused`: calls that
    were refused.

    `reasons`: why tests, or whole files, were skipped or failed as expected.
    """

    outcomes: dict[str, str]
    reasons: dict[str, str]
    called: dict[str, list[str]]
    refused: dict[str, int]
    output: str

    def of(self, tests: object = None) -> Counter[str]:
        """How many of the tests (None: of all) ended in which way."""
        return Counter(outcome for test, outcome in self.outcomes.items() if tests is None or test in tests)  # type: ignore[operator]

    @property
    def ours(self) -> set[str]:
        """The tests that called a function of the backend."""
        return {test for tests in self.called.values() for test in tests}

    def explained(self) -> list[str]:
        """A line for each file and reason: how many tests did not run, or failed as expected, and why."""
        groups = Counter(
            (test.split("::")[0], self.outcomes.get(test, "file skipped"), why) for test, why in self.reasons.items()
        )
        return [f"{count:3} {outcome:12} {file}: {why}" for (file, outcome, why), count in sorted(groups.items())]


def run(files: list[str], seconds: float = 7200) -> Counts:
    """Run some files of NetworkX's tests, named by their paths inside of its package; none: all."""
    where = [str(PLACE / file) for file in files] or [str(PLACE)]
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        environment = {
            **os.environ,
            "NETWORKX_TEST_BACKEND": "isthmus",
            "NETWORKX_FALLBACK_TO_NX": "True",
            "ISTHMUS_COUNTS": str(counts),
            "PYTHONPATH": str(ROOT),
        }
        options = [
            "-q",
            "-c",
            os.devnull,
            "--rootdir",
            str(PLACE),
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.networkx.counting",
            "--tb=short",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *where],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if not counts.exists():
            raise RuntimeError(f"NetworkX's tests did not run:\n{done.stdout}\n{done.stderr}")
        return Counts(**json.loads(counts.read_text()), output=done.stdout)


def shown(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in ("passed", "skipped", "xfailed", "failed"))


def main(files: list[str]) -> int:
    counts = run(files)
    print(counts.output)
    print(f"NetworkX {networkx.__version__} on the backend isthmus: {shown(counts.of())}")
    print(f"of these, tests that call functions of the backend: {shown(counts.of(counts.ours))}")
    for name, tests in sorted(counts.called.items()):
        print(f"  {name:42} {shown(counts.of(set(tests)))}")
    print("skipped, or expected to fail, and why:", *(f"  {line}" for line in counts.explained()), sep="\n")
    print("calls that were left to NetworkX:")
    for reason, times in sorted(counts.refused.items()):
        print(f"  {times:5} {reason}")
    return int(counts.of()["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
