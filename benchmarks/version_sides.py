"""The processes of one source tree, as `versions.py` sees them.

One stays for all rounds of a cell; or each round has a fresh one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import child, isthmus

WORKER = Path(__file__).resolve().with_name("version_worker.py")


class Left(Exception):
    """Why a cell has no figures."""


class Worker:
    """A process that runs one cell by the source of one tree."""

    def __init__(self, side: str, tree: Path, store: Path, algorithm: str, told: dict[str, Any]) -> None:
        self._side = side
        command = [sys.executable, str(WORKER), str(store), algorithm, json.dumps(told)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in close)
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(tree)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        try:
            check_tree(tree, self._read()["tree"])
        except BaseException:
            self.close()
            raise

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return dict(json.loads(line))
        self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().strip().splitlines() or ["ended without a word"]
        raise Left(f"{self._side}: {words[-1]}")

    def run(self, keep: Path | None = None) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"keep": keep and str(keep)}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def compiled(self) -> bool:
        """Whether it said that it compiles kernels."""
        return b"compiling" in os.pread(
            self._errors.fileno(), 1 << 16, 0
        )  # the process writes at the same position, so no seek

    def peak(self) -> int:
        """Bytes that were resident at most, since the process began."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()


class Starter:
    """Starts a process for every round: `isthmus run bfs`, by the source of one tree."""

    def __init__(self, side: str, tree: Path, store: Path, algorithm: str, told: dict[str, Any]) -> None:
        self._side, self._environment, self._peak = side, {"PYTHONPATH": str(tree)}, 0
        found = child([sys.executable, "-c", "import isthmus; print(isthmus.__file__)"], **self._environment).output
        check_tree(tree, str(Path(found.strip()).parent.parent))
        self._command = isthmus("run", algorithm, str(store), "--quiet", "--source", str(told["source"]))
        for name, value in told["options"].items():
            self._command += [f"--{name}", str(value)]

    def run(self, keep: Path | None = None) -> dict[str, float]:
        try:
            done = child([*self._command, *(["--output", str(keep)] if keep else [])], **self._environment)
        except SystemExit as error:
            raise Left(f"{self._side}: {str(error).splitlines()[0]}") from None
        self._peak = max(self._peak, done.peak_rss)
        return {"total": done.seconds, "wall": done.seconds}

    def compiled(self) -> bool:
        """Always, as nothing tells whether it did."""
        return True

    def peak(self) -> int:
        return self._peak

    def close(self) -> None:
        """Every process has ended already."""


def check_tree(tree: Path, used: str) -> None:
    if Path(used).resolve() != tree.resolve():
        raise SystemExit(f"expected Isthmus from {tree}, got it from {used}")
