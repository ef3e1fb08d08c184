"""How a command ended that a test ran in its own process."""

from __future__ import annotations

import json
from typing import Any


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        (line,) = self.out.splitlines()
        return json.loads(line)
