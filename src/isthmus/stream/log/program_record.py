"""Programs of a stream as its folder records them: by name, with options. A program of the user's own is code, and must
be given again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.program import Program
from isthmus.stream.maintain.program_request import ProgramRequest


def record_of(requested: Any) -> dict[str, Any]:
    """A program as JSON."""
    if isinstance(requested, str):
        requested = ProgramRequest(ALGORITHMS[requested])
    if isinstance(requested, ProgramRequest):
        try:
            options = {name: plain(value) for name, value in requested.options.items()}
        except TypeError:
            return {"given": requested.name or requested.algorithm.name}
        return {"algorithm": requested.algorithm.name, "options": options, "name": requested.name}
    return {"given": requested.name if isinstance(requested, Program) else type(requested).__name__}


def requests_of(records: list[Any], folder: str) -> list[ProgramRequest]:
    """The programs that a folder has on record; OptionError if one of them must be given."""
    found = []
    for each in records:
        if "given" in each:
            raise OptionError(
                f"{folder}: its stream maintained {each['given']}, which is not kept in a file: give "
                f"programs=[...] again"
            )
        found.append(
            ProgramRequest(
                ALGORITHMS[each["algorithm"]],
                {name: value_of(item) for name, item in each["options"].items()},
                each["name"],
            )
        )
    return found


def plain(value: Any) -> Any:
    """A value as JSON; TypeError if that does not hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.tolist(), "dtype": value.dtype.name}
    if isinstance(value, dict):
        return {"pairs": [[plain(key), plain(item)] for key, item in value.items()]}
    raise TypeError(type(value).__name__)


def value_of(record: Any) -> Any:
    if isinstance(record, list):
        return [value_of(item) for item in record]
    if isinstance(record, dict) and "array" in record:
        return np.array(record["array"], record["dtype"])
    if isinstance(record, dict):
        return {value_of(key): value_of(item) for key, item in record["pairs"]}
    return record
