"""Degrees of all vertices, as a result. They are read from the positions of the lists; no edge moves.

Only a directed graph that was stored without in-edges has its targets read, to count them.
"""

from __future__ import annotations

import numpy as np

from isthmus.graph.graph import Graph
from isthmus.memory import Budget
from isthmus.programs.algorithm import Answer
from isthmus.programs.column import Array, Column
from isthmus.runtime.results.result import Result
from isthmus.runtime.session import check_graph
from isthmus.runtime.trace.trace import Trace

COLUMNS = tuple(Column(name, none=()) for name in ("degree", "in_degree", "out_degree"))
BYTES = 32  # near memory per vertex: three columns of a directed graph, and counting the last of them


def degrees(graph: Graph, memory: str | int | None = None) -> Result:
    """The degree of every vertex; of a directed graph in-degree and out-degree as well, and their sum as degree.

    As `Graph.degree` counts them: an undirected self loop counts once. Raises BudgetError if they do not fit in
    `memory`.
    """
    check_graph("degrees", graph)
    with Budget(memory).holding(BYTES * graph.vertices, "the degrees of all vertices"), graph.reading():
        columns = columns_of(graph)
        answer = Answer(columns, COLUMNS, {"edges": graph.edges, "most": int(columns["degree"].max(initial=0))})
        facts = {
            "algorithm": "degrees",
            "graph": {"path": str(graph.path) if graph.path else None},
            "result": answer.figures,
        }
        return Result("degrees", graph.snapshot, answer, Trace(), facts)


def columns_of(graph: Graph) -> dict[str, Array]:
    out = graph.snapshot.out_degrees()
    if not graph.directed:
        return {"degree": out}
    into = graph.snapshot.in_degrees()
    return {"degree": np.add(into, out, dtype=np.int64), "in_degree": into, "out_degree": out}
