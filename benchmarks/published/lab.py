"""Runs on modelled devices, each done once and checked, whatever number of experiments look at it.

Proportions. HyTGraph's and Scaph's partitions are 32 MB, about 1/1000 of the edges with their weights. HyTGraph's cache
is 2 GB: 7 to 13 % of its five large graphs' targets and weights, 14 to 26 % of the targets alone, which is all that
programs without weights read. Of the near memory for edges, `hytgraph` stages through a quarter and caches in the rest,
so it gets 12.5 % where weights are read and 25 % where not: the same bytes, with caches of 9 and 19 %. All recipes get
as much; experiments about memory set their own. The smallest partition and buffer that Isthmus allows, and the few
vertices that one core packs, shrink as well.

A card has fixed times (a launch, a copy, a batch of faults) and sizes (blocks of 2 MB). A graph a hundred times smaller
than the paper's makes them a hundred times more important. `Lab.scaled` is the same card with these shrunk as the graph
is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus import sizes
from isthmus.devices.model import figures as devices
from isthmus.graph.store.files import BLOCK
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.declaration import Monotone
from isthmus.programs.program import Facts, State
from published.cases import LAYERS, Case

PARTITIONS = 1000
LEAST_BUFFER = 24 << 10  # bytes: four partitions of 4 KB and what alignment takes
FEW_ROWS = 5  # vertices that one core packs: 5,000 of the papers' millions
NEAR = {"SSSP": "12.5%", "MST": "12.5%", "PR": "25%", "WCC": "25%", "BFS": "25%", "NNDR": "25%", "GCS": "25%"}
THRESHOLD = 0.01  # of a residual: HyTGraph, Subway and Grus
# of circuits: enough to spread; the hub of a web graph gets most of it back.
CURRENT = {"rmat": 1e5, "grid": 1e5, "real": 1e9}
ALGORITHMS = ("PR", "SSSP", "WCC", "BFS")
RESIDENT, OUR_OWN = "auto", ("best_first", "bottom_up")  # all edges near, where they fit; without what only `auto` does
PAPER_ARCS = 3.61e9  # Friendster, HyTGraph's largest real graph
LEAST_BLOCK = 64 << 10  # bytes of managed memory: still far less than is near
FIXED_SECONDS = (("link", "transfer_seconds"), ("link", "copy_seconds"), ("near", "launch_seconds"))


@ist.accumulative(initial=0.15, threshold=THRESHOLD, column="rank")
def delta_pagerank(delta, degree):
    """The papers' PageRank: no more than a residual above 0.01 is sent on. Isthmus's own goes on until its bound is
    met.
    """
    return 0.85 * delta / degree


@ist.monotone(initial=0, combine="min", column="label")
def smallest(label):
    return label


class SmallestLabel(Monotone):
    """The papers' components: the smallest label travels. Isthmus's own follows every edge once.

    Labels are the numbers that vertices have in the store. So in hub order hubs have the smallest, as in HyTGraph,
    which sorts vertices by renumbering them. The answer has the smallest natural number of each component, whatever the
    order.
    """

    def __init__(self) -> None:
        super().__init__(smallest.message, smallest.initial, smallest.combine, None, smallest.column, smallest.sides)
        self.name = "smallest_label"

    def begin(self, facts: Facts) -> State:
        return State((np.arange(facts.vertices),), None)

    def result(self, state: State, facts: Facts) -> dict[str, Any]:
        labels, naturals = state.arrays[0], facts.naturals()
        if naturals is None:
            return {self.column: state.given(labels)}
        least = np.full(labels.size, labels.size)
        np.minimum.at(least, labels, naturals)
        return {self.column: least[labels]}


def relaxed_circuit(delta, degree):
    """Circuit simulation by relaxation: a vertex whose currents do not balance moves its voltage until they do.

    Scaph takes its circuit simulation from CuSha (HPDC 2014) and does not describe it; CuSha's released sources have no
    circuit program. So this is our choice: every edge is a resistor of 1 ohm; from every vertex a resistor leads to the
    ground that conducts a quarter of what its edges do; the source takes in a current (`CURRENT`). Isthmus's own
    circuits are solved by conjugate gradients, which need all vertices after every pass.
    """
    return 0.8 * delta / degree


class PushBFS(BFS):
    """The papers' BFS: it never switches to bottom-up search."""

    def begin(self, facts: Facts) -> State:
        state = super().begin(facts)
        self.unordered(state)
        return state


@dataclass
class Run:
    """What a run took."""

    facts: dict[str, Any]
    iterations: list[Any] = field(repr=False)

    @property
    def ratio(self) -> float:
        """Bytes moved / edge bytes; edges that are all near were brought once, which no iteration counts."""
        return 1.0 if self.facts["policy"] == "resident" else float(self.facts["transfer"]["ratio"])

    @property
    def bytes(self) -> int:
        return int(self.facts["transfer"]["bytes"])

    @property
    def seconds(self) -> float:
        return float(self.facts["seconds"]["modelled"])


class Lab:
    """Graphs, runs so far, and how large sweeps are."""

    def __init__(self, folder: Path, names: Iterable[str], scale: int, device: str = "model:rtx2080ti") -> None:
        self.folder, self.scale, self.device = folder, scale, device
        sizes.now = replace(
            sizes.now, partitions=PARTITIONS, smallest_partition=BLOCK, modelled_buffer=LEAST_BUFFER, few_rows=FEW_ROWS
        )
        self._cases: dict[str, Case] = {}
        self._runs: dict[tuple[Any, ...], Run] = {}
        self._answers: dict[tuple[str, str], Any] = {}
        self.skipped: list[str] = []
        self.cases: list[Case] = []
        for name in names:
            case = self.case(name)
            if case.missing:
                self.skipped.append(case.missing)
            else:
                self.cases.append(case)

    def case(self, name: str) -> Case:
        return self._cases.setdefault(name, Case(name))

    def sweep(self, smaller: int = 0) -> Case:
        """The RMAT graph that experiments vary things on, or a smaller one."""
        return self.case(f"rmat{self.scale - smaller}")

    def apart(self) -> Lab:
        """The same graphs and answers, no runs: for what a run's name does not say."""
        other = Lab(self.folder, (), self.scale, self.device)
        other._cases, other._answers = self._cases, self._answers
        return other

    def run(
        self, case: Case, algorithm: str, policy: str, memory: str = "", device: str = "", without: tuple[str, ...] = ()
    ) -> Run:
        """A run, or the same one from before."""
        memory, device = memory or NEAR[algorithm], device or self.device
        key = (case.name, algorithm, policy, memory, device, without)
        if key not in self._runs:
            how = {"device": device, "memory": memory, "policy": policy, "without": without}
            self._runs[key] = self._do(case, algorithm, policy == "hytgraph" and "order" not in without, how)
        return self._runs[key]

    def _do(self, case: Case, algorithm: str, hubs: bool, how: dict[str, Any]) -> Run:
        graph = case.hubs_first if hubs else case.graph
        if algorithm == "WCC":
            result = ist.run(SmallestLabel(), case.both_ways_hubs_first if hubs else case.both_ways, **how)
        elif algorithm == "PR":
            result = ist.run(delta_pagerank(), graph, **how)
        elif algorithm == "MST":
            return self._forest(case, how)
        elif algorithm == "NNDR":
            return self._digits(case, how)
        elif algorithm == "GCS":
            program = ist.accumulative(initial=CURRENT[case.kind], threshold=THRESHOLD, column="current")(
                relaxed_circuit
            )
            result = ist.run(program(case.source), case.both_ways, **how)
        elif algorithm == "BFS":
            result = ist.run(PushBFS(case.source), graph, **how)
        else:
            result = ist.sssp(graph, case.source, **how)
        self._check(case, algorithm, result.filled(), how)
        return Run(result.summary(), list(result.trace))

    def _forest(self, case: Case, how: dict[str, Any]) -> Run:
        """A minimum spanning forest; its weight is the answer, ties make several."""
        result = ist.minimum_spanning_forest(case.both_ways, **how)
        facts = result.summary()
        weight = facts["result"]["total_weight"]
        if self._answers.setdefault((case.name, "MST"), weight) != weight:
            raise SystemExit(f"{case.name} MST {how}: the answer is wrong")
        return Run(facts, list(result.trace))

    def _digits(self, case: Case, how: dict[str, Any]) -> Run:
        """Inference of a layered network; sums may differ in their last digits."""
        size = case.network.vertices // LAYERS
        inputs = np.random.default_rng(2).random(size)
        result = ist.nn_inference(
            case.network, inputs, [size] * LAYERS, activation="tanh", output_activation="identity", **how
        )
        if not np.allclose(self._answers.setdefault((case.name, "NNDR"), result.values), result.values):
            raise SystemExit(f"{case.name} NNDR {how}: the answer is wrong")
        return Run(result.summary(), list(result.trace))

    def _check(self, case: Case, algorithm: str, values: Any, how: dict[str, Any]) -> None:
        """The answer is that of the first run; ranks and currents may differ by what residuals below the threshold
        could still add.
        """
        expected = self._answers.setdefault((case.name, algorithm), values)
        passed = {"PR": 0.85, "GCS": 0.8}.get(algorithm)  # the share of a residual that is sent on
        if passed is not None:
            same = np.abs(values - expected).sum() <= 2 * THRESHOLD * passed / (1 - passed) * values.size
        else:
            same = np.array_equal(values, expected)
        if not same:
            raise SystemExit(f"{case.name} {algorithm} {how}: the answer is wrong")

    def card(self, case: Case) -> str:
        """HyTGraph's card, scaled with the graph."""
        return self.scaled("rtx2080ti", case.graph.arcs)

    def scaled(self, name: str, arcs: int, paper_arcs: float = PAPER_ARCS, multiprocessors: float = 1.0) -> str:
        """A device whose fixed times and sizes are shrunk as a graph of `arcs` is against one of `paper_arcs`.

        `multiprocessors`: the share of them that kernels use; their rate shrinks in proportion.
        """
        share = min(1.0, arcs / paper_arcs)
        base = devices.find(name)
        blocks = max(LEAST_BLOCK, 1 << round(math.log2(base.managed.block_bytes * share)))
        batch = max(1, round(base.managed.batch_faults * share))
        figures = {
            **{key: getattr(getattr(base, key[0]), key[1]) * share for key in FIXED_SECONDS},
            ("managed", "block_bytes"): blocks,
            ("managed", "batch_faults"): batch,
            ("managed", "fault_seconds"): base.managed.fault_seconds * batch / base.managed.batch_faults,
            ("near", "push_share"): base.near.push_share * multiprocessors,
        }
        text = f'base = "{name}"\nname = "{base.name}, scaled"\n'
        for section in ("link", "managed", "near"):
            text += f"[{section}]\n"
            own = {key: value for (where, key), value in figures.items() if where == section}
            text += "".join(
                f'{key} = {{ value = {value!r}, source = "scaled with the graph" }}\n' for key, value in own.items()
            )
        path = self.folder / f"{name}-{arcs}-{paper_arcs:g}-{multiprocessors:.3g}.toml"
        path.write_text(text)
        return f"{devices.PREFIX}{path}"


@dataclass
class Section:
    """One table or figure: ours beside the paper's, what is judged, what disagrees."""

    title: str
    rows: list[list[str]]
    text: list[str] = field(default_factory=list)
    judged: list[tuple[str, bool]] = field(default_factory=list)


def mean(values: Iterable[float]) -> float:
    """Geometric."""
    found = list(values)
    return math.exp(statistics.fmean(math.log(value) for value in found)) if found else math.nan


def times(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
