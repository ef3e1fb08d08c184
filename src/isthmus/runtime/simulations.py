"""Simulations on graphs as functions: electric circuits; see `algorithms` for what their arguments have in common."""

from __future__ import annotations

from typing import Any

from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.programs.circuit import Circuit, path_resistances
from isthmus.runtime.algorithms import NOTHING, merged, must_fit
from isthmus.runtime.execute import execute
from isthmus.runtime.more_algorithms import say_unweighted
from isthmus.runtime.result import Array, Result


def circuit(
    graph: Graph, fixed: dict[Any, float], currents: dict[Any, float] | None = None, resistances: bool = False, tol: float = 1e-6,
    max_iter: int = 10_000, **how: Any,
) -> Result:  # fmt: skip
    """Voltages of a resistor network whose vertices in `fixed` are held at theirs; weights are conductances.

    No voltage is off by more than `tol` times the difference of the highest and the lowest. Directions do not count.
    A vertex without a path to a held one floats: its voltage is NaN (null in Arrow).
    """
    if graph.weighted and graph.store.manifest.negative_weights:
        raise OptionError(f"circuit needs weights of at least 0, and {graph} has negative ones")

    def program(ohms: Array) -> Circuit:
        return Circuit(fixed, currents or {}, ohms, resistances, tol, max_iter, graph.directed)

    must_fit(program(NOTHING), graph, how)
    paths = execute(path_resistances(list(fixed), resistances, graph.directed), graph, **how)
    solver = program(paths._columns["ohms"])
    result = merged(execute(solver, graph, **how), paths)
    if not solver.converged:
        why = f"stopped after {max_iter} iterations" if solver.steps_left == 0 else "rounding allows no smaller bound"
        result.trace.notes.append(f"{why}; voltages may be off by {solver.error_bound:.3g}, more than tol = {tol:g} of their spread")
    floating = result._facts["result"]["floating"]
    if floating:
        result.trace.notes.append(f"{floating} vertices have no path to a held vertex: their voltages are undefined")
    say_unweighted(result, graph)
    return result
