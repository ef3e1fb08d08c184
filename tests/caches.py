"""Cache folders for tests, and output without what a cold cache adds to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from isthmus.kernels.compile.code_cache import kernels_folder


def without_programs(folder: Path) -> Path:
    """A cache folder with the machine code of our kernels, if that was kept, so that only programs have to be
    compiled.
    """
    target = folder / "kernels"
    target.mkdir(mode=0o700, parents=True)
    source = kernels_folder()
    for path in source.glob("isthmus.kernels.*.code") if source.stat().st_dev == folder.stat().st_dev else ():
        os.link(path, target / path.name)
    return folder


def quiet(err: str) -> str:
    """Standard error without the lines that say that something is compiled."""
    return re.sub(r"^(isthmus|note): compiling .*\n", "", err, flags=re.MULTILINE)
