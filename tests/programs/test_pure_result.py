"""`result` changes nothing: neither the state nor the program, and what it returned stays as it was while the run goes
on.

Tests `result` of `programs/program.py` in every file of `programs`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest
from tests.programs.ways import columns, skewed

import isthmus as ist
import isthmus.programs
from isthmus.errors import OptionError
from isthmus.programs.algorithms.betweenness_centrality import Betweenness
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.circuit import Circuit, path_resistances
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.algorithms.katz import Katz, LiveKatz
from isthmus.programs.algorithms.label_propagation import LabelPropagation
from isthmus.programs.algorithms.local_clustering_coefficient import LocalClustering
from isthmus.programs.algorithms.minimum_spanning_forest import SpanningForest
from isthmus.programs.algorithms.multi_source_bfs import MultiSourceBFS
from isthmus.programs.algorithms.nn_inference import Inference, Layers
from isthmus.programs.algorithms.pagerank import FixedPageRank, PageRank
from isthmus.programs.algorithms.personalized_pagerank import PersonalizedPageRank
from isthmus.programs.algorithms.php import PHP, LivePHP
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.programs.algorithms.strongly_connected_components import StrongComponents
from isthmus.programs.algorithms.triangle_count import TriangleCount
from isthmus.programs.algorithms.weakly_connected_components import Components, Labels
from isthmus.programs.algorithms.widest_path import WidestPath
from isthmus.programs.predecessors import Predecessors
from isthmus.programs.scores.deltas import DeltaPageRank, LivePageRank
from isthmus.programs.strengths import Strengths

VERTICES = 400
STEPS: dict[str, Any] = {"policy": "filter", "memory": "1%", "far": "ram", "threads": 2}
WAYS = {"in steps": STEPS, "in memory": {"threads": 2}}


@ist.monotone(initial="vertex", column="labels")
def smallest(label):
    return label


@ist.accumulative(threshold=1e-4)
def spread(delta, degree, share=0.5):
    return share * delta / degree


def distances(graph):
    return ist.run(BFS(0), graph).raw("distance")


def ohms(graph):
    return ist.run(path_resistances([0, 7], False, True), graph).raw("ohms")


def strengths(graph):
    return ist.run(Strengths(), graph).raw("strength")


PROGRAMS: dict[str, Any] = {
    "monotone": lambda g: smallest(),
    "accumulative": lambda g: spread(),
    "bfs": lambda g: BFS(0),
    "sssp": lambda g: SSSP(0),
    "widest_path": lambda g: WidestPath(0),
    "predecessors": lambda g: Predecessors(0, distances(g), False),
    "components": lambda g: Components(),
    "strong components": lambda g: StrongComponents(True),
    "pagerank, pulling": lambda g: PageRank(),
    "pagerank, pushing": lambda g: PageRank(pulls=False),
    "pagerank, weights": lambda g: PageRank(strengths=strengths(g)),
    "pagerank, deltas": lambda g: DeltaPageRank(),
    "pagerank, rounds": lambda g: FixedPageRank(0.85, 4),
    "strengths": lambda g: Strengths(),
    "personalized_pagerank": lambda g: PersonalizedPageRank([0, 1, 2]),
    "katz": lambda g: Katz(0.001),
    "php": lambda g: PHP(0, strengths=strengths(g)),
    "multi_source_bfs": lambda g: MultiSourceBFS([0, 5, 9]),
    "betweenness": lambda g: Betweenness([0, 1, 2, 3, 4], 2),
    "core_number": lambda g: CoreNumber(True, True),
    "label_propagation": lambda g: LabelPropagation(4),
    "triangles": lambda g: TriangleCount(True),
    "local_clustering": lambda g: LocalClustering(True),
    "spanning_forest": lambda g: SpanningForest(True),
    "live labels": lambda g: Labels(True),
    "live pagerank": lambda g: LivePageRank(0.85, 1e-6, None, False),
    "live php": lambda g: LivePHP(0, 0.8, 1e-6, False),
    "live katz": lambda g: LiveKatz(0.001, 1.0, 1e-6, False, False),
    "circuit": lambda g: Circuit({0: 1.0, 7: 0.0}, {3: 0.5}, ohms(g), directed=True),
}
NETWORK = (np.array([0, 0, 1, 2, 3]), np.array([2, 3, 3, 4, 4]), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))


@pytest.fixture(scope="module", params=["natural", "hub"])
def graph(request, tmp_path_factory):
    edges = columns(skewed(lambda draw: draw.randint(1, 9), VERTICES, 800))
    path = tmp_path_factory.mktemp("pure") / "graph.isthmus"
    with ist.ingest(edges, path, vertices=VERTICES, directed=True, order=request.param) as made:
        yield made


def seen(value: Any) -> Any:
    """A value to compare: all that it holds, byte by byte, and which arrays these are."""
    if isinstance(value, np.ndarray):
        return id(value), value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: seen(each) for key, each in value.items() if key != "given"}
    if isinstance(value, list | tuple):
        return [seen(each) for each in value]
    if type(value).__module__.startswith("isthmus.programs"):
        return seen(vars(value))
    return value if isinstance(value, int | float | str | None) else id(value)


def arrays_of(value: Any) -> list[np.ndarray]:
    """All arrays that a value holds."""
    if isinstance(value, np.ndarray):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [array for each in inside for array in arrays_of(each)]


class Observer:
    """Asks a program for its result after each iteration and at the end, where it checks that nothing came of it."""

    def __init__(self, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program, self.kept, self.state, self.facts = program, [], None, None
        kind = type(program)
        begin, self.result = kind.begin, kind.result

        def began(program: Any, facts: Any) -> Any:
            self.state, self.facts = begin(program, facts), facts
            return self.state

        def ended(program: Any, state: Any, facts: Any) -> Any:
            state.over = False
            self.look()
            state.over = True
            return self.result(program, state, facts)

        monkeypatch.setattr(kind, "begin", began)
        monkeypatch.setattr(kind, "result", ended)

    def look(self, _: Any = None) -> None:
        before = seen([vars(self.state), vars(self.program)])
        first, second = self.ask(), self.ask()
        assert seen([vars(self.state), vars(self.program)]) == before
        assert contents(first) == contents(second)
        own = arrays_of([self.state.arrays, self.state.extra])
        assert not any(np.may_share_memory(column, array) for column in first.values() for array in own)
        self.kept.append((first, contents(first)))

    def ask(self) -> dict[str, Any]:
        try:
            return self.result(self.program, self.state, self.facts)
        except OptionError:  # Katz has no answer before it has a bound
            assert isinstance(self.program, Katz) and len(self.kept) < 9
            return {}


def contents(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: (column.dtype, column.shape, column.tobytes()) for name, column in columns.items()}


def check(program: Any, graph: Any, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run it while it is observed; returns how often it was."""
    observer = Observer(program, monkeypatch)
    found = ist.run(program, graph, watch=observer.look if "policy" in how else lambda _: None, **how)
    assert contents({name: found.raw(name) for name in found.columns}) == observer.kept[-1][1]
    assert all(contents(first) == then for first, then in observer.kept)
    return len(observer.kept)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_change_nothing(name, how, graph, monkeypatch):
    looked = check(PROGRAMS[name](graph), graph, how, monkeypatch)
    assert looked > 1 or "policy" not in how


@pytest.mark.parametrize("activation", ["softmax", "identity"])
def test_results_of_networks_change_nothing(activation, monkeypatch):
    graph = ist.read(NETWORK)
    program = Inference(Layers.of([2, 2, 1], 5), np.ones((3, 2)), np.zeros(5), output_activation=activation)
    assert check(program, graph, STEPS, monkeypatch) > 2


def test_every_program_is_there():
    for module in pkgutil.iter_modules(isthmus.programs.__path__, "isthmus.programs."):
        importlib.import_module(module.name)
    known, waiting = set(), [ist.Program]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("isthmus.programs") and not kind.__abstractmethods__:
            known.add(kind.__name__)
    tested = {name for name in known if name in globals()} | {"Monotone", "MonotoneBestFirst", "Accumulative"}
    assert known - {"Memoised"} == tested, "it has no columns of its own"
