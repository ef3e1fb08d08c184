"""Run every command that README.md and the user guide show, in an empty folder. Not a pytest file: .ci/run calls it.

Lines that begin with `$ ` in console blocks are commands; python blocks are run as scripts in the same folder, and must print
what their lines that begin with `#> ` say, if there are any.
`make` lines are left to .ci/run, which runs the same targets, and `pip install` needs a published package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ELSEWHERE = ("make ", "pip install", "git clone", "cd ")
GUIDE = ("algorithms", "jobs", "programs", "calibration", "compare", "model", "checkpoints", "streaming", "networkx", "formats", "gpu")
PAGES = ("README.md", *(f"docs/{name}.md" for name in GUIDE))


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```(console|python)\n(.*?)```", text, re.DOTALL)


def commands(kind: str, body: str) -> list[list[str]]:
    if kind == "python":
        return [[sys.executable, "example.py"]]  # a file: programs are compiled from their source
    lines = [line[2:] for line in body.replace("\\\n", " ").splitlines() if line.startswith("$ ")]
    return [["bash", "-c", line] for line in lines if not line.startswith(ELSEWHERE)]


def as_shown(body: str, printed: str) -> bool:
    shown = re.findall(r"^#> (.*)$", body, re.MULTILINE)
    return not shown or shown == printed.splitlines()


def main() -> int:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, body in [pair for page in PAGES for pair in blocks((ROOT / page).read_text())]:
            if kind == "python":
                (Path(folder) / "example.py").write_text(body)
            for command in commands(kind, body):
                start = time.perf_counter()
                done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
                passed = done.returncode == 0 and as_shown(body, done.stdout)
                ran += 1
                failed += not passed
                shown = command[-1] if kind == "console" else f"python: {body.strip().splitlines()[0]} ..."
                print(f"{'ok    ' if passed else 'FAILED'} {time.perf_counter() - start:6.1f} s  {shown}", flush=True)
                if not passed:
                    print(done.stdout, done.stderr)
    print(f"documented commands: {ran - failed} passed, {failed} failed")
    return int(failed > 0 or ran == 0)


if __name__ == "__main__":
    sys.exit(main())
