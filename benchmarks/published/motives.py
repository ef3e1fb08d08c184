"""What the papers begin with: HyTGraph's Table I and Figure 3, Scaph's Figure 6, Grus's Figure 2.

They show why a new system is needed: what whole partitions and pages bring beside what is used, and how often lists are
used again. All of it can be counted. Figures are drawn in the papers: beside ours stands what their text says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from isthmus import sizes
from isthmus.runtime.loop import Loop
from published.cases import Case
from published.lab import OUR_OWN, RESIDENT, Lab, Run, Section, times

# Seconds of Subway and EMOGI.
TABLE_1 = {("SK", "SSSP"): (14.6, 7.5), ("SK", "PR"): (8.7, 18.6), ("UK", "PR"): (16.9, 12.4)}
STANDS_FOR = {"SK": "cnr-2000", "UK": "npm-deps-2016"}
# Figure 3 (a) and (d).
USED = {"filter": {"SSSP": "28.3%", "PR": "12.3%"}, "unified:read-mostly": {"SSSP": "54.5%", "PR": "65.0%"}}
PARTITIONS = 256  # of figure 3 (a)
SYNCHRONOUS = {"filter": (), "subway": ("recompute",), "unified:read-mostly": (), "emogi": ()}  # figure 3 (g) and (h)
SHORT, SHORTEST = 32, 8  # neighbours, of figure 3 (f)
FIFTH = 0.2  # of the vertices, of figure 3 (i) and (j)
SCALES = (6, 5, 4, 3, 2, 1, 0)  # below the sweep's, standing for 19 to 25 in Grus's figure 2; those up to 23 fit
FITS_UP_TO = 2


def web(lab: Lab) -> Case:
    """The first real graph, which is a web graph, or the RMAT graph of the sweeps."""
    return next((case for case in lab.cases if case.kind == "real"), lab.sweep())


def hytgraph_table_1(lab: Lab) -> Section:
    """Neither packing nor direct access is always the faster one."""
    rows = [["algorithm", "graph", "subway", "emogi", "emogi ÷ subway"]]
    names = {case.name: case for case in lab.cases}
    for (graph, algorithm), (subway, emogi) in TABLE_1.items():
        case = names.get(STANDS_FOR[graph], lab.sweep())
        found = [lab.run(case, algorithm, name, device=lab.card(case)).seconds for name in ("subway", "emogi")]
        rows.append(
            [algorithm, case.name, *(f"{seconds * 1e3:.2f} ms" for seconds in found), times(found[1] / found[0])]
        )
        rows.append([algorithm, f"{graph}, paper", f"{subway} s", f"{emogi} s", times(emogi / subway)])
    return Section("HyTGraph, Table I: packing against direct access, modelled seconds, card scaled", rows)


class Uses:
    """The active vertices of every iteration of a run, and the partitions it was cut into."""

    def __init__(self) -> None:
        self.active: list[Any] = []
        self.degrees = self.cuts = np.empty(0, np.int64)


@contextlib.contextmanager
def watched() -> Iterator[Uses]:
    """What the run inside uses."""
    seen, step = Uses(), Loop.step

    def spy(self: Loop, record: Any) -> bool:
        side = self.pipeline.sides[0]
        seen.degrees, seen.cuts = np.asarray(side.lists.degrees()), side.partitions.cuts
        seen.active.append(self.frontier.rows(0, self.frontier.vertices).copy())
        return step(self, record)

    with mock.patch.object(Loop, "step", spy):
        yield seen


def hytgraph_figure_3(lab: Lab) -> Section:
    """What each way to move edges wastes, and how unevenly lists are used."""
    rows = [["part", "what", "algorithm", "ours", "paper"]]
    case = lab.sweep()
    degrees = np.diff(np.asarray(case.graph.store.read("out.offsets")).astype(np.int64))
    for policy, part in (("filter", "a"), ("unified:read-mostly", "d")):
        for algorithm, said in USED[policy].items():
            other = lab.apart()  # which sets sizes
            with sizes.using(**({"partitions": PARTITIONS} if policy == "filter" else {})):
                run = other.run(case, algorithm, policy, device=lab.card(case))
            entry = run.facts["graph"]["edge_bytes"] / run.facts["graph"]["arcs"]
            used = sum(step.active_edges for step in run.iterations) * entry / run.bytes
            rows.append([part, f"active edges, of what {policy} moves", algorithm, f"{used:.1%}", f"FK {said}"])
    for most, said in ((SHORT, "74.7%"), (SHORTEST, "51.1%")):
        rows.append(
            [
                "f",
                f"vertices with fewer than {most} neighbours",
                "",
                f"{np.mean(degrees < most):.1%}",
                f"five graphs {said}",
            ]
        )
    for algorithm in ("SSSP", "PR"):
        runs = {
            name: lab.run(case, algorithm, name, without=off, device=lab.card(case))
            for name, off in SYNCHRONOUS.items()
        }
        rows.append(["g, h", "iterations in which each is the fastest", algorithm, fastest(runs), "see below"])
    for algorithm in ("SSSP", "PR"):
        rows += reuse(lab, case, algorithm)
    return Section(f"HyTGraph, Figure 3: what is moved and what is used, {case.name}", rows)


def fastest(runs: dict[str, Run]) -> str:
    """How often each recipe is the fastest of all in an iteration; they are synchronous, so iterations are the same."""
    count = min(len(run.iterations) for run in runs.values())
    best = [min(runs, key=lambda name: runs[name].iterations[k].modelled) for k in range(count)]
    return ", ".join(f"{name} {best.count(name)}" for name in runs)


def reuse(lab: Lab, case: Case, algorithm: str) -> list[list[str]]:
    """How often the vertices of each fifth are active, by frequency and by degree."""
    with watched() as seen:
        lab.apart().run(case, algorithm, "emogi", device=lab.card(case))
    often = np.bincount(np.concatenate(seen.active), minlength=seen.degrees.size)
    fifth = int(FIFTH * often.size)
    by_use, by_degree = (np.argsort(-key, kind="stable")[:fifth] for key in (often, seen.degrees))
    shared = np.intersect1d(by_use, by_degree).size / max(fifth, 1)
    over = [often[some].mean() / max(often.mean(), 1e-9) for some in (by_use, by_degree)]
    return [
        ["i, j", "uses of the fifth used most ÷ mean", algorithm, times(over[0]), "significantly higher"],
        ["i, j", "uses of the fifth with most neighbours ÷ mean", algorithm, times(over[1]), "-"],
        ["i, j", "vertices that both fifths have", algorithm, f"{shared:.0%}", "34-45%"],
    ]


def scaph_figure_6(lab: Lab) -> Section:
    """What active partitions hold: edges used now, used later, and never again."""
    rows = [["algorithm", "graph", "iteration", "used now (UD)", "used later (PUD)", "never again (NUD)"]]
    for algorithm in ("WCC", "SSSP", "MST"):
        for case in dict.fromkeys((web(lab), lab.sweep())):
            with watched() as seen:
                lab.apart().run(case, algorithm, "filter", device=lab.scaled("p100", case.graph.arcs))
            parts = values(seen)
            for k in sorted({0, len(parts) // 4, len(parts) // 2, 3 * len(parts) // 4, len(parts) - 1}):
                rows.append([algorithm, case.name, f"{k + 1} of {len(parts)}", *(f"{share:.0%}" for share in parts[k])])
    text = [
        "Of all edges. Paper, for TW: PUD is substantial in earlier iterations, NUD becomes dominant. An edge that is "
        "used now and again "
        "later counts as used now."
    ]
    return Section("Scaph, Figure 6: value of the edges in active partitions", rows, text)


def values(seen: Uses) -> list[tuple[float, float, float]]:
    """Shares of UD, PUD and NUD among all edges, of active partitions only, for every iteration."""
    later, found = np.zeros(seen.degrees.size, bool), []
    for active in reversed(seen.active):
        now = np.zeros(later.size, bool)
        now[active] = True
        used, again = np.repeat(now, seen.degrees), np.repeat(later & ~now, seen.degrees)
        some = np.repeat(np.add.reduceat(used, seen.cuts[:-1]) > 0, np.diff(seen.cuts))
        shares = used.mean(), (again & some).mean(), (some & ~used & ~again).mean()
        found.append(tuple(float(share) for share in shares))
        later |= now
    return found[::-1]


def grus_figure_2(lab: Lab) -> Section:
    """BFS with explicit copies, with managed memory, and with a prefetch, on graphs that fit and graphs that do not."""
    rows = [["", *(f"scale {25 - less}" for less in SCALES)]]
    # Bytes; the largest that fits has a quarter more than it needs.
    room = lab.sweep(FITS_UP_TO).graph.arcs * 4 * 1.25 / 0.75
    card = lab.scaled("rtx2080ti", lab.sweep().graph.arcs, 2.0**29)
    seconds: dict[str, list[float]] = {}
    for less in SCALES:
        case = lab.sweep(less)
        share = f"{100 * room / (case.graph.arcs * 4):.4g}%"
        for name, policy in (("explicit copy", RESIDENT), ("UM", "unified"), ("UM, prefetched", "unified:prefetch")):
            fits, without = (less >= FITS_UP_TO, OUR_OWN) if policy == RESIDENT else (True, ())
            run = lab.run(case, "BFS", policy, share, card, without).seconds if fits else float("nan")
            seconds.setdefault(name, []).append(run)
    for name, over in (("UM", "explicit copy"), ("UM, prefetched", "explicit copy"), ("UM, prefetched", "UM")):
        ratios = [own / base for own, base in zip(seconds[name], seconds[over], strict=True)]
        rows.append([f"{name} ÷ {over}", *map(times, ratios)])
    text = [
        f"An explicit copy is one of all edges. {lab.sweep().name} and smaller stand for the paper's graphs; up "
        f"to its 23 "
        "they fit. Paper, for Tigr: UM takes 1.9 to 4.3 times the time of explicit copies, and UM with a prefetch 2.3 "
        "times at 19 to "
        "21, about as long at 22 and 23. At 24 and 25 it has no copies, and a prefetch is slightly slower than UM."
    ]
    return Section("Grus, Figure 2: breadth-first search in managed memory, card scaled", rows, text)


EXPERIMENTS = {
    "hytgraph-table1": hytgraph_table_1,
    "hytgraph-fig3": hytgraph_figure_3,
    "scaph-fig6": scaph_figure_6,
    "grus-fig2": grus_figure_2,
}
