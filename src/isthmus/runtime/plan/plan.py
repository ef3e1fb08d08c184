"""Plans a run without running it: how its memory is split, and what one pass over all edges costs with each engine.

No edges are read; their bytes follow from counts. A pass assumes that all vertices are active, so it is the most that
one iteration can cost. Every engine states its own cost (`Engine.pass_cost`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from isthmus import sizes
from isthmus.devices.choose import choose
from isthmus.devices.cpu import Cpu
from isthmus.devices.device import Device
from isthmus.engines.engine import BUFFERS, Cost, Pass
from isthmus.engines.registry import ENGINES, engine
from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.graph.snapshot import Snapshot
from isthmus.link.link import Profile
from isthmus.memory import format_size
from isthmus.policies.recipes import named
from isthmus.programs.program import Program
from isthmus.runtime.call import Rehearsed
from isthmus.runtime.near.budget import Split
from isthmus.runtime.public import callable_of
from isthmus.runtime.results.result import Result


@dataclass(frozen=True)
class Plan:
    """The most demanding pass of an algorithm, and the link it would use."""

    algorithm: str  # its name
    program: Program  # the pass that needs most memory
    graph: Snapshot
    near: Split  # how the budget would be split
    policy: str  # the recipe
    device: str
    profile: Profile  # the rates of the link
    on: Device

    @property
    def sections(self) -> list[int]:
        """Bytes of the far arrays that the program follows: targets, and weights where it reads them, of each side."""
        weights = self.program.reads_weights()
        return [array.bytes for side in self.program.sides for array in self.graph.far(side, weights)]

    @property
    def edge_bytes(self) -> int:
        return sum(self.sections)

    def costs(self) -> dict[str, Cost]:
        """The cost of one pass by engine: the built-in engines, and others that the recipe uses."""
        block = self.profile.block
        most = sizes.now.largest_read
        read_bytes = most if self.near.resident else max(block, min(most, self.near.edges // BUFFERS))
        scan = Pass(self.sections, read_bytes, self.profile, self.on.page_cost())
        names = dict.fromkeys([*ENGINES, *named(self.policy).policy.engines])
        found = {name: engine(name).pass_cost(scan) for name in names}
        return {name: cost for name, cost in found.items() if cost is not None}

    def summary(self) -> dict[str, Any]:
        """The object that `isthmus plan --json` prints."""
        graph, near, profile = self.graph, self.near, self.profile
        return {
            "algorithm": self.algorithm,
            "program": self.program.name,
            "graph": {
                "path": str(graph.path) if graph.path else None,
                "vertices": graph.vertices,
                "edges": graph.edges,
                "arcs": graph.arcs,
                "edge_bytes": self.edge_bytes,
            },
            "device": self.device,
            "policy": "resident" if near.resident else self.policy,
            "memory": {
                "budget": near.budget,
                "least": near.least,
                "whole": near.whole,
                "near_peak": near.peak,
                "split": near.as_dict(),
            },
            "link": {
                "name": profile.name,
                "bandwidth": profile.bandwidth,
                "request_rate": profile.request_rate,
                "block": profile.block,
                "compaction": profile.compaction,
                "measured": profile.measured,
            },
            "pass": {name: asdict(cost) for name, cost in self.costs().items()},
            "notes": self.notes(),
        }

    def notes(self) -> list[str]:
        note = self.on.plan_note(self.graph, self.profile)
        return [*self.near.notes, *([note] if note else [])]

    def describe(self) -> list[tuple[str, str]]:
        """The memory split and the link, as rows for people."""
        near = self.near
        edges = "all edges" if near.resident else "staging buffers"
        split = {
            "vertex state": near.state,
            "offsets": near.offsets,
            "frontier": near.frontier,
            edges: near.edges,
            "cache": near.cache,
        }
        where = (
            "in memory: all edges stay near"
            if near.resident
            else f"from {self.profile.name}: edges come as they are needed"
        )
        return [
            *([("pass", self.program.name)] if self.program.name != self.algorithm else []),
            ("runs", where),
            ("budget", format_size(near.budget)),
            *((f"  {name}", format_size(size)) for name, size in split.items()),
            ("  not used", format_size(near.budget - near.peak)),
            ("least budget", format_size(near.least)),
            ("all in memory", f"from {format_size(near.whole)} on"),
            ("edges", format_size(self.edge_bytes)),
            ("link", self.on.profile_text(self.profile)),
        ]


def plan(
    algorithm: Callable[..., Result] | str,
    graph: Graph,
    *args: Any,
    policy: str = "auto",
    device: str | Device = "auto",
    **options: Any,
) -> Plan:
    """Plan `algorithm(graph, …)`, a function or its name, with the same options. Raises BudgetError if the run would.

    An algorithm of several passes is planned for the pass that needs most memory, of those known before it runs.
    """
    passes: list[tuple[Program, Split]] = []
    run = callable_of("plan", algorithm)
    on = choose(device, graph, options.get("memory")).device if isinstance(graph, Graph) else Cpu()
    try:
        run(
            graph,
            *args,
            policy=policy,
            device=on,
            rehearse=lambda program, near: passes.append((program, near)),
            **options,
        )
    except Rehearsed:
        program, near = max(reversed(passes), key=lambda each: each[1].least)
        name = getattr(run, "__name__", "")
        snapshot = graph.snapshot
        shown = name if name.isidentifier() else program.name
        return Plan(shown, program, snapshot, near, policy, on.name, on.profile(snapshot), on)
    raise OptionError(f"expected an algorithm of isthmus, got {algorithm!r}, which ran nothing")
