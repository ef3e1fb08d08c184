"""A function's tree as kernels have it: names from outside resolved, loops over `unrolled` unrolled, annotations
removed.

Trees are copied, never changed, because the tree that was read is used again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from isthmus.programs.message import Message, Source


def unrolled(count: int) -> range:
    """Like range(count), for a loop or the elements of a tuple(...) that is unrolled in kernels."""
    return range(count)


class Rewriting:
    """Rewrites one function; `resolve` gives the expression that replaces a name from outside, `outside` its value."""

    def __init__(self, source: Source, outside: Mapping[str, Any], resolve: Callable[[ast.Name], ast.expr]) -> None:
        self._source, self._outside, self._resolve = source, outside, resolve
        stored = (
            node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._own = {*stored, *source.arguments}
        self._known: dict[str, ast.expr] = {}  # names from outside that are resolved
        self._counters: dict[str, int] = {}  # of the enclosing unrolled loops, by name

    def function(self, name: str) -> ast.FunctionDef:
        """The rewritten function, under another name."""
        tree = self._source.tree
        body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
        arguments = ast.arguments(
            [], [ast.arg(argument) for argument in self._source.arguments], None, [], [], None, []
        )
        fresh = ast.FunctionDef(name, arguments, self._all(body) or [ast.Pass()], [], None)
        fresh.lineno = tree.lineno
        return fresh

    def _all(self, nodes: list[Any]) -> list[Any]:
        return [fresh for node in nodes for fresh in self._each(node)]

    def _each(self, node: Any) -> Iterator[Any]:
        """The nodes that replace one of a list: an unrolled loop becomes many."""
        if isinstance(node, ast.For) and self._unrolled(node.iter):
            for _ in self._counted(node.target, node.iter):
                yield from self._all(node.body)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield located(ast.Assign([self._one(node.target)], self._one(node.value)), node)
        elif not isinstance(node, ast.AnnAssign):
            yield self._one(node)

    def _one(self, node: Any) -> Any:
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in self._own:
            return self._call(node, node.func)
        return self._copied(node)

    def _copied(self, node: ast.AST) -> ast.AST:
        given = {
            name: self._all(value) if isinstance(value, list) else self._one(value)
            for name, value in ast.iter_fields(node)
        }
        return located(type(node)(**given), node)

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._counters:
            return ast.Constant(self._counters[node.id])
        if node.id in self._own:
            return node
        if node.id not in self._known and node.id not in self._outside:
            raise self._source.wrong(node.lineno, f"uses the name {node.id!r}, which is not defined")
        return self._resolved(node)

    def _resolved(self, node: ast.Name) -> ast.expr:
        if node.id not in self._known:
            resolved = self._known[node.id] = self._resolve(node)
            names = (each.id for each in ast.walk(resolved) if isinstance(each, ast.Name))
            hidden = next((name for name in names if name in self._own), None)
            if hidden is not None:
                complaint = (
                    f"has a variable {hidden!r}, which is the name of {node.id!r} in kernels; rename the variable"
                )
                raise self._source.wrong(node.lineno, complaint)
        return self._known[node.id]

    def _call(self, node: ast.Call, function: ast.Name) -> Any:
        value = self._outside.get(function.id)
        if isinstance(value, Message):
            if len(node.args) != 5 or node.keywords:
                raise self._source.wrong(node.lineno, "expected message(value, weight, degree, vertex, params)")
            return ast.Call(self._resolved(function), self._all(value.ordered(node.args)), [])
        if value is tuple and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            elements = node.args[0]
            loop = elements.generators[0]
            if len(elements.generators) == 1 and not loop.ifs and self._unrolled(loop.iter):
                return ast.Tuple([self._one(elements.elt) for _ in self._counted(loop.target, loop.iter)], ast.Load())
        return self._copied(node)

    def _unrolled(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and self._outside.get(node.func.id) is unrolled
        )

    def _counted(self, target: ast.expr, loop: ast.expr) -> Iterator[int]:
        """Iterate over `unrolled(count)`, with the loop's counter known."""
        assert isinstance(loop, ast.Call)
        count = self._one(loop.args[0]) if len(loop.args) == 1 else None
        if not isinstance(target, ast.Name) or not isinstance(count, ast.Constant) or not isinstance(count.value, int):
            raise self._source.wrong(loop.lineno, "expected `for name in unrolled(count)`, with a constant count")
        for self._counters[target.id] in range(count.value):
            yield self._counters[target.id]
        self._counters.pop(target.id, None)


def located(fresh: ast.AST, node: ast.AST) -> ast.AST:
    """`fresh` with the line of `node`, which some nodes need to become text."""
    if isinstance(node, ast.stmt) and isinstance(fresh, ast.stmt):
        fresh.lineno = node.lineno
    return fresh


def literal(value: Any) -> ast.expr:
    """A number as a literal of its own type."""
    if isinstance(value, np.generic):
        return ast.Call(ast.Attribute(ast.Name("np"), type(value).__name__), [literal(value.item())], [])
    if isinstance(value, bool):
        return ast.Constant(value)
    if isinstance(value, int):
        return ast.parse(repr(int(value)), mode="eval").body
    return ast.parse(repr(float(value)).replace("inf", "np.inf").replace("nan", "np.nan"), mode="eval").body
