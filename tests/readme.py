"""Do what README.md and the pages of docs/ show, and compare what they say is printed. Not a pytest file: .ci/run calls
it.

A reader who follows a page from its first block to its last must get through, so each page has an empty folder of its
own. The reference, which is made from docstrings, counts as pages too. Two pages are followed at a time, on two cores:
the least budget of a run depends on the number of threads.

- A `console` block has commands, in lines that begin with `$ `, and behind a command what it prints, if that is shown.
  If the shown output has a line that begins with `error: `, the command must fail; all others must succeed.
- A `python` block is a script. If it has lines that begin with `#> `, they are what it prints. A line that begins with
  `#! ` is the error that it ends with, and so are several.
- `...` in what is shown stands for any text; alone on a line, for any lines. Of lines about seconds, memory and
  transfers (`MEASURED`), only the first words are compared. Whether something had to be compiled is not compared at
  all.

Blocks of other kinds are only read: `text` is output with times in it, `py` is code for a library that is not
installed. `make` lines are left to .ci/run, which runs the same targets, and `pip install` needs a published package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
ELSEWHERE = ("make ", "pip install", "git clone", "cd ")
PAGES = (
    "README.md",
    *(
        str(path.relative_to(ROOT))
        for folder in ("docs", "docs/guide")
        for path in sorted((ROOT / folder).glob("*.md"))
    ),
)
AT_ONCE = 2  # pages
CORES = 2
# Figures in such a line depend on the machine.
MEASURED = re.compile(r"time|read|made|moved|near memory|iterations|error bound")
COMPILING = re.compile(r"(note: )?compiling ")


@dataclass
class Step:
    """A command or a script, and what it must print."""

    command: str  # for bash; empty: run `script`
    script: str = ""
    printed: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)  # what the script ends with

    @property
    def title(self) -> str:
        return self.command or f"python: {self.script.strip().splitlines()[0]} ..."

    @property
    def fails(self) -> bool:
        return bool(self.error) or any(line.startswith("error: ") for line in self.printed)

    def wrong(self, folder: Path) -> str:
        """Run it. Returns what went wrong, or nothing."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
        if self.script:
            (folder / "example.py").write_text(self.script)  # a file: programs are compiled from their source
        command = ["bash", "-c", self.command] if self.command else [sys.executable, "example.py"]
        streams = subprocess.STDOUT if self.command else subprocess.PIPE  # a terminal shows both
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=streams,
            text=True,
            timeout=600,
            check=False,
        )
        said = f"{done.stdout}{done.stderr or ''}"
        if (done.returncode != 0) != self.fails:
            return f"exit code {done.returncode}\n{said}"
        if self.printed and not is_as_shown(self.printed, done.stdout.splitlines()):
            return "\n".join(["shown:", *self.printed, "printed:", said])
        last = (done.stderr or "").strip().splitlines()[-len(self.error) :]
        return (
            ""
            if not self.error or is_as_shown(self.error, last)
            else "\n".join(["shown:", *self.error, "printed:", said])
        )


def is_as_shown(shown: list[str], printed: list[str]) -> bool:
    """Whether lines are those that a page shows, except for spaces at their ends and what depends on the machine."""
    text = "".join(f"{line.rstrip()}\n" for line in printed if not COMPILING.match(line))
    return re.fullmatch("".join(pattern(line.rstrip()) for line in shown), text) is not None


def pattern(line: str) -> str:
    """The expression that matches what a shown line stands for."""
    if line.strip() == "...":
        return r"(?:.*\n)*"
    if measured := re.match(rf"(?:{MEASURED.pattern})  ", line):
        return re.escape(measured[0]) + r".*\n"
    return re.escape(line).replace(r"\.\.\.", ".*") + r"\n"


def blocks(text: str) -> list[tuple[str, str]]:
    """(Kind, contents) of the blocks that are run."""
    return re.findall(r"^```(console|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def steps(kind: str, body: str) -> Iterator[Step]:
    if kind == "python":
        yield Step("", body, re.findall(r"^#> (.*)$", body, re.MULTILINE), re.findall(r"^#! (.*)$", body, re.MULTILINE))
        return
    for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        if not command.startswith(ELSEWHERE):
            yield Step(command, printed=printed)


def follow(page: tuple[str, str]) -> tuple[int, int]:
    """Do what a page shows. Returns how many steps there were, and how many failed."""
    name, text = page
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for step in [step for kind, body in blocks(text) for step in steps(kind, body)]:
            start = time.perf_counter()
            wrong = step.wrong(Path(folder))
            ran, failed = ran + 1, failed + bool(wrong)
            print(
                f"{'FAILED' if wrong else 'ok    '} {time.perf_counter() - start:6.1f} s  {name}: {step.title}",
                flush=True,
            )
            if wrong:
                print(wrong, flush=True)
    return ran, failed


def pages() -> dict[str, str]:
    """The text of every page, by name; pages of the reference are made now."""
    from docs.builder import reference

    return {name: (ROOT / name).read_text() for name in PAGES} | {
        f"reference/{name}": text for name, text in reference.pages().items()
    }


def main(wanted: list[str]) -> int:
    """Follow all pages, or those whose names contain one of the words given."""
    chosen = [page for page in pages().items() if not wanted or any(word in page[0] for word in wanted)]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(follow, sorted(chosen, key=lambda page: -len(blocks(page[1])))))
    ran, failed = sum(each[0] for each in found), sum(each[1] for each in found)
    print(f"documented commands: {ran - failed} passed, {failed} failed")
    return int(failed > 0 or ran == 0)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # instead of tests/, whose folder networkx would hide the package
    sys.exit(main(sys.argv[1:]))
