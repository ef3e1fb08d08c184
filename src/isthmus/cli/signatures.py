"""Commands made from two signatures: a command's own options, and those it shares with its group."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def compose(own: Callable[..., Any], shared: Callable[..., None], act: Callable[..., None]) -> Callable[..., None]:
    """A command named and described as `own`, with the options of both.

    `own` is called with its options; what it returns and the shared options go to `act(name, returned, **shared)`.
    """
    mine = inspect.signature(own, eval_str=True).parameters
    theirs = inspect.signature(shared, eval_str=True).parameters

    def run(**given: Any) -> None:
        act(own.__name__, own(**{name: given.pop(name) for name in mine}), **given)

    run.__name__, run.__doc__ = own.__name__, own.__doc__
    parameters = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (*mine.values(), *theirs.values())]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
