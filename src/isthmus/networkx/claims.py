"""Which calls the backend takes. A function is claimed with the rules that a call must keep; a broken rule is a reason.

NetworkX asks `can_run` before a call, with the arguments as the caller gave them, and shows the reason in its log.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isthmus.networkx.stored_graph import Stored

Rule = Callable[[dict[str, Any]], str | None]  # arguments by name -> why not


@dataclass(frozen=True)
class Claim:
    """A function under NetworkX's name and signature, and the rules of its arguments."""

    function: Callable[..., Any]
    rules: tuple[Rule, ...]

    def refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why the backend does not support a call with these arguments; None if it does."""
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            return f"the arguments do not fit {self.function.__name__}: {error}"
        bound.apply_defaults()
        reasons = (rule(bound.arguments) for rule in self.rules)
        return next((reason for reason in reasons if reason is not None), None)


CLAIMS: dict[str, Claim] = {}


def claimed(*rules: Rule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function of the backend."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        CLAIMS[function.__name__] = Claim(function, rules)
        return function

    return declare


def by_name(name: str) -> Rule:
    """An edge attribute must be given by its name (or be None)."""

    def rule(arguments: dict[str, Any]) -> str | None:
        given = arguments[name]
        if given is None or isinstance(given, str):
            return None
        return f"{name}: expected the name of an edge attribute, got {'a function' if callable(given) else repr(given)}"

    return rule


def must_be_none(name: str, why: str) -> Rule:
    return lambda arguments: None if arguments[name] is None else f"{name}: {why}"


def undirected(arguments: dict[str, Any]) -> str | None:
    return "directed graphs are not supported" if arguments["G"].is_directed() else None


def no_multigraph(arguments: dict[str, Any]) -> str | None:
    return "multigraphs are not supported" if arguments["G"].is_multigraph() else None


def reversible(arguments: dict[str, Any]) -> str | None:
    """Searches against the direction of edges need a graph that can be reversed."""
    graph = arguments["G"]
    if isinstance(graph, Stored) and graph.is_directed():
        return "a stored directed graph cannot be searched against its edges; store it with its edges reversed"
    return None
