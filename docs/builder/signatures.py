"""A signature in one line, as the reference shows it: types as they stand in the source, and defaults that say
something.
"""

from __future__ import annotations

import inspect
from typing import Any

PLAIN = (type(None), bool, int, float, str, tuple)  # types whose values are shown as defaults
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def signature_of(function: Any, method: bool = False) -> str:
    """`(graph: Graph, memory: str | int | None = None) -> Result`."""
    signature = inspect.signature(function)
    shown: list[str] = []
    given = list(signature.parameters.values())[int(method) :]
    for at, parameter in enumerate(given):
        if parameter.kind is parameter.KEYWORD_ONLY and not any(each.startswith("*") for each in shown):
            shown.append("*")
        shown.append(parameter_text(parameter))
        following = given[at + 1].kind if at + 1 < len(given) else None
        if parameter.kind is parameter.POSITIONAL_ONLY and following is not parameter.POSITIONAL_ONLY:
            shown.append("/")
    returns = type_text(signature.return_annotation)
    return f"({', '.join(shown)})" + (f" -> {returns}" if returns not in ("", "None") else "")


def parameter_text(parameter: inspect.Parameter) -> str:
    text = STARS.get(parameter.kind, "") + parameter.name
    annotation = type_text(parameter.annotation)
    if annotation and parameter.kind not in STARS:  # of **options, the text says which
        text += f": {annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    default = repr(parameter.default) if isinstance(parameter.default, PLAIN) else "..."
    return f"{text} = {default}" if annotation else f"{text}={default}"


def type_text(annotation: Any) -> str:
    """A type as text; nothing for Any, which tells nothing."""
    if annotation in (inspect.Parameter.empty, Any):
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return "" if text == "Any" else text
