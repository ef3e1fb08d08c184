"""What the Python reference consists of: its pages, their sections, and the names in each.

Every public name of `isthmus` is on exactly one page; a test compares. Classes that functions return without being
public names are given by the module that has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ALGORITHMS, LIVE = "algorithms", "live programs"  # names that are known only when Isthmus is imported


@dataclass(frozen=True)
class Section:
    """A heading, a few words, and what is described below it."""

    title: str
    words: str = ""
    names: tuple[str, ...] = ()  # public names
    classes: tuple[str, ...] = ()  # other classes, as module:Class
    fields: tuple[str, ...] = ()  # classes whose fields are options, as module:Class
    all_of: str = ""  # ALGORITHMS or LIVE


@dataclass(frozen=True)
class Page:
    title: str
    sections: tuple[Section, ...] = field(default_factory=tuple)
    words: str = ""


PAGES = {
    "graphs": Page(
        "Graphs",
        (
            Section("Open and make graphs", "", ("open", "ingest", "read", "generate", "from_networkx")),
            Section(
                "Options of inputs",
                "`ingest` and `read` take these as keywords. [Formats](../formats.md#inputs) has the rules.",
                fields=("isthmus.graph.formats:ReadOptions", "isthmus.graph.ingest.cleaning:Cleaning"),
            ),
            Section("A graph", "", ("Graph",), ("isthmus.graph.ingest.ingest:Report",)),
            Section(
                "Parts, degrees, export",
                "",
                ("subgraph", "ego_graph", "degrees", "export", "networkx_graph", "coordinates"),
            ),
            Section(
                "Stores and disks",
                "",
                ("verify", "calibrate"),
                ("isthmus.graph.store.verify:Verdict", "isthmus.link.link:Profile"),
            ),
        ),
    ),
    "algorithms": Page(
        "Algorithms",
        (Section("All algorithms", all_of=ALGORITHMS),),
        (
            "Every algorithm is a function of a graph. After its own arguments it takes [the options of every run]"
            "(runs.md#options-of-every-run), which change only its speed, and it returns a "
            "[`Result`](runs.md#results). "
            "[Algorithms](../algorithms.md) explains the answers and has an example for each.\n\n"
            "All raise `OptionError` for an argument or option that is not valid, `UnknownVertexError` for a vertex "
            "that the graph does not "
            "have, `BudgetError` if `memory` is too small, and `StoreError` if the store is damaged "
            "([errors](errors.md))."
        ),
    ),
    "runs": Page(
        "Runs and results",
        (
            Section(
                "Options of every run",
                "Keywords of every algorithm and of `isthmus.run`. They change the speed and never the answer. Those "
                "of the first table can "
                "also be given to a session, for all of its calls.",
                fields=("isthmus.runtime.options:SessionOptions", "isthmus.runtime.options:CallOptions"),
            ),
            Section("Run", "", ("run", "shortest_path")),
            Section("Sessions", "", ("session", "Session")),
            Section(
                "Results",
                "Algorithms return a `Result`. [Everyday jobs](../jobs.md#top-vertices-and-single-values) shows what "
                "to do with it.",
                classes=(
                    "isthmus.runtime.results.result:Result",
                    "isthmus.runtime.results.edge_result:EdgeResult",
                    "isthmus.runtime.results.inference_result:InferenceResult",
                ),
            ),
            Section(
                "Plan and compare",
                "[Plan, compare, report](../compare.md) explains the figures.",
                ("plan", "compare"),
                ("isthmus.runtime.plan.plan:Plan", "isthmus.runtime.plan.comparison:Comparison"),
            ),
        ),
    ),
    "programs": Page(
        "Programs",
        (
            Section("Declared by one function", "", ("monotone", "accumulative")),
            Section("Programs of your own", "", ("Program", "Functions", "State"), ("isthmus.programs.program:Facts",)),
            Section(
                "Algorithms as plugins",
                "[How to add an algorithm](../plugins.md#an-algorithm) uses these.",
                ("algorithm", "Runner", "Answer", "Column", "Option", "Vertex"),
            ),
        ),
        "[Writing a program](../programs.md) explains the rules, with examples.",
    ),
    "streams": Page(
        "Streams",
        (
            Section("Open a stream", "", ("stream",), ("isthmus.stream.live:Live",)),
            Section(
                "Results of batches",
                "",
                classes=("isthmus.stream.results.live_result:LiveResult", "isthmus.stream.batch_report:BatchReport"),
            ),
            Section(
                "Programs that a stream keeps current",
                "Their options are those of the algorithm of the same name.",
                all_of=LIVE,
            ),
            Section(
                "Workloads and recipes",
                "",
                ("make_workload", "compare_streams"),
                ("isthmus.stream.stream_comparison:StreamComparison",),
            ),
        ),
        "[Graphs that change](../streaming.md) explains streams, with examples.",
    ),
    "errors": Page(
        "Errors and warnings",
        (
            Section(
                "Errors",
                "",
                (
                    "IsthmusError",
                    "OptionError",
                    "GraphFormatError",
                    "StoreError",
                    "BudgetError",
                    "UnknownVertexError",
                    "ProgramError",
                    "BatchError",
                    "PluginError",
                    "NoPathError",
                ),
            ),
            Section("Warnings", "", ("IsthmusWarning",)),
        ),
        (
            "Every error that Isthmus raises on purpose is an `IsthmusError`. Its message says what was expected, "
            "what was received, where, "
            "and what to do. On the shell it is one line, and the kind of error is the exit code. [Troubleshooting]"
            "(../guide/troubleshooting.md) shows the usual ones."
        ),
    ),
}

INTERNAL = {  # members that other parts of Isthmus use, and no user
    "Graph": ("reading", "entries", "near_lists", "need_in_edges", "target_bytes", "weight_bytes"),
    "Session": ("call", "call_with"),
    "Result": ("raw", "declared", "whose", "has_groups", "group_words", "describe", "rows"),
    "LiveResult": ("make", "is_made", "as_earlier"),
    "Live": ("apply_edits", "kinds"),
    "BatchReport": ("of_repeated",),
    "Program": ("resumed", "text", "explain"),
    "Plan": ("describe", "sections", "edge_bytes", "costs", "notes"),
    "Functions": ("text",),
    "Column": ("stands_for", "missing", "masked", "shown"),
    "CallOptions": ("rehearse",),
    "ReadOptions": ("own", "with_own"),
    "Profile": ("seconds", "packs_ahead"),
    "Answer": ("main",),
}
