"""Follows updates for the shell: one line per batch, files of changes, checks, and the summary at the end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import typer

from isthmus.cli import signals, verbosity
from isthmus.cli.console import counted, err, facts, fail, out, short_count, show_json, warn
from isthmus.cli.program_texts import parse
from isthmus.devices.residency import Transfer
from isthmus.errors import IsthmusError
from isthmus.graph.graph import open_graph
from isthmus.memory import format_size, peak_rss
from isthmus.runtime.plan.comparison import DisagreementError
from isthmus.runtime.results.result import shown
from isthmus.runtime.trace import provenance
from isthmus.stream.batch_report import PARTS, BatchReport
from isthmus.stream.log.recovery import NAME
from isthmus.stream.opening import stream
from isthmus.stream.results.changes import save_changes

if TYPE_CHECKING:
    from isthmus.cli.commands.stream_follow import Outputs, StreamOptions
    from isthmus.graph.graph import Graph


class Line:
    """A live line on a terminal; elsewhere one line per batch on standard output."""

    def __init__(self, json: bool) -> None:
        self._status: Any = err.status("waiting for changes") if err.is_terminal and not verbosity.quiet else None
        self._plain = not json and not out.is_terminal

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, report: BatchReport) -> None:
        signals.check()
        if self._status is not None:
            self._status.update(brief(report))
        if self._plain:
            print(line_of(report), flush=True)


class Follower:
    """A stream on a store, as a command."""

    def __init__(self, store: Path, programs: list[str] | None, outputs: Outputs, options: StreamOptions) -> None:
        outputs.check(options.log is not None and (options.log / NAME).exists())
        self._outputs, self._reports, self._checks = outputs, list[BatchReport](), list[dict[str, str]]()
        self._date, self._begin = provenance.now(), time.perf_counter()
        with open_graph(store) as graph:
            self._origin = origin_of(graph, self._date)
            requests = None if programs is None else [parse(text, graph) for text in programs]
            notes_about(requests or [], graph)
            self._live = stream(graph, requests, **vars(options))
        self._log = self._live.log
        self._printed: set[str] = set()  # notes
        self._opened = time.perf_counter() - self._begin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._live.close()

    def run(self, updates: str, check: bool, how: dict[str, Any]) -> None:
        """Apply all updates, then report. After an error, the batches before it are reported too."""
        failed: IsthmusError | None = None
        self._tell()
        with Line(self._outputs.json) as line:
            try:
                for report in self._live.follow(updates, **how):
                    self._take(report, check)
                    line.show(report)
                if check and not self._reports:  # of the recovered graph
                    self._check(self._live.number)
            except IsthmusError as error:
                failed = error
        self._tell()
        if failed is None and self._outputs.output is not None:
            self._live.save(self._outputs.output, self._outputs.overwrite)
            self._outputs.written.append(str(self._outputs.output))
        self._finish(failed, updates, check)

    def _tell(self) -> None:
        """Print the notes about the stream, each once."""
        for note in self._live.notes:
            if note not in self._printed:
                warn(note)
                self._printed.add(note)

    def _take(self, report: BatchReport, check: bool) -> None:
        self._tell()
        self._reports.append(report)
        folder = self._outputs.changes
        if folder is not None:
            for name in self._live:
                path = folder / f"batch-{report.number:06d}-{quote(name, safe=' ')}.{self._outputs.changes_format}"
                save_changes(self._live[name], path)
        saved = f", their changes are in {folder}" if folder is not None else ""
        where = f"are in {self._log.path}" if self._log.path is not None else "applied in memory"
        signals.left_over[:] = [f"{batches(len(self._reports))} {where}{saved}; no store was changed"]
        if check:
            self._check(report.number)

    def _check(self, number: int) -> None:
        self._checks.append(self._live.check())
        for name, where in self._checks[-1].items():
            raise DisagreementError(
                f"batch {number}: {name} is not what a run from scratch gives: {where}; please report this"
            )

    def _finish(self, failed: IsthmusError | None, updates: str, check: bool) -> None:
        summary = self._summary(updates, check, failed)
        if self._outputs.json:
            show_json(summary)
        elif failed is None or self._reports:
            self._show(summary)
        if failed is not None:
            done = (
                f" ({batches(len(self._reports))} applied before)"
                if self._reports and not isinstance(failed, DisagreementError)
                else ""
            )
            fail(f"{failed}{done}")
            raise typer.Exit(failed.exit_code)

    def _summary(self, updates: str, check: bool, failed: IsthmusError | None) -> dict[str, Any]:
        """The object that `--json` prints."""
        live, graph = self._live, self._live.graph
        seconds = {part: sum(report.seconds[part] for report in self._reports) for part in PARTS}
        rows = [
            {**report.as_dict(), **({"check": checked} if checked is not None else {})}
            for report, checked in self._with_checks()
        ]
        return {
            "batches": rows,
            "graph": {"vertices": graph.vertices, "edges": graph.edges, "edge_bytes": graph.edge_bytes},
            "programs": {name: self._described(name) for name in live},
            "device": live.device,
            **self._transfer(),
            **self._rates(),
            "check": {"ok": not any(self._checks), "batches": len(self._checks)} if check else None,
            "seconds": {"open": self._opened, **seconds, "total": time.perf_counter() - self._begin},
            "log": self._log.facts(),
            "memory": {"budget": live.budget, "graph": live.graph_bytes, "rss_peak": peak_rss()},
            "on_disk": {"merges": live.merges, "policy": live.policy} if live.on_disk else None,
            "written": self._outputs.written,
            "failed": None if failed is None else str(failed),
            "repeat": {**self._origin, "updates": updates},
        }

    def _rates(self) -> dict[str, Any]:
        """Changes, how fast they were applied and, if they have times, how fast they arrive."""
        changes = sum(report.changes for report in self._reports)
        applied = sum(report.seconds["total"] for report in self._reports)
        arrivals = [report.arrival for report in self._reports if report.arrival]
        timed = bool(self._reports) and len(arrivals) == len(self._reports)
        return {
            "changes": changes,
            "rate": changes / applied if applied else None,
            "arrival_rate": changes / sum(arrivals) if timed else None,
            "keeps_up": all(report.keeps_up for report in self._reports) if timed else None,
        }

    def _transfer(self) -> dict[str, Any]:
        """The transfers to a modelled device or a GPU."""
        if self._live.opened is None:
            return {}
        total = Transfer()
        for report in self._reports:
            total.add(report.transfer or Transfer())
        return {"policy": self._live.policy, "opening": self._live.opened.as_dict(), "transfer": total.as_dict()}

    def _with_checks(self) -> list[tuple[BatchReport, dict[str, str] | None]]:
        checks: list[dict[str, str] | None] = [*self._checks[: len(self._reports)]]
        return list(zip(self._reports, checks + [None] * (len(self._reports) - len(checks)), strict=True))

    def _described(self, name: str) -> dict[str, Any]:
        result, request = self._live[name], self._live.requested[name]
        options = {option: provenance.simple(value) for option, value in request.options.items()}
        figures = provenance.simple(result.summary()["result"])
        return {"algorithm": request.algorithm.name, "options": options, "batch": result.number, "result": figures}

    def _show(self, summary: dict[str, Any]) -> None:
        graph, seconds = summary["graph"], summary["seconds"]
        split = ", ".join(f"{part} {seconds[part]:.3f}" for part in PARTS if part != "log" or summary["log"])
        rows = [
            ("batches", f"{len(summary['batches']):,}, {counted(summary['changes'], 'change')}"),
            ("graph now", f"{graph['vertices']:,} vertices, {graph['edges']:,} edges"),
            ("time", f"{seconds['total']:.3f} s (opening {seconds['open']:.3f}, {split})"),
        ]
        if "transfer" in summary:
            rows.append(("moved", moved_in_words(summary)))
        if summary["rate"]:
            rows.append(("rate", pace(summary["rate"], summary["arrival_rate"], summary["keeps_up"])))
        for name, each in summary["programs"].items():
            figures = ", ".join(
                f"{figure.replace('_', ' ')} {shown(value)}" for figure, value in each["result"].items()
            )
            rows.append((name, f"{figures} (batch {each['batch']})"))
        if summary["check"]:
            rows.append(
                (
                    "checked",
                    f"{batches(summary['check']['batches'])}, "
                    f"{'answers agree' if summary['check']['ok'] else 'an answer differs'}",
                )
            )
        rows.append(
            (
                "memory",
                f"graph {format_size(summary['memory']['graph'])}; process peak "
                f"{format_size(summary['memory']['rss_peak'])}",
            )
        )
        if summary["log"]:
            rows.append(("log", f"{summary['log']['path']}, batch {summary['log']['batch']:,}"))
        rows += [("written", path) for path in summary["written"]]
        facts(f"stream on {summary['repeat']['graph']['path']}", rows)


def origin_of(graph: Graph, date: str) -> dict[str, Any]:
    """Facts that repeat the command."""
    with provenance.from_shell(sys.argv[1:]):
        return provenance.origin(graph.snapshot, date)


def notes_about(requests: list[Any], graph: Graph) -> None:
    """Warn about programs that read weights, if the graph has none."""
    if not graph.weighted and any(each.algorithm.name == "sssp" for each in requests):
        warn("the graph has no weights: every edge counts as 1")


def moved_in_words(summary: dict[str, Any]) -> str:
    """The transfers of all batches, in words."""
    moved = summary["transfer"]
    read = moved["hit_edges"] + moved["miss_edges"]
    hits = f", {100 * moved['hit_edges'] / read:.1f} % of the edges read were near" if moved["hit_edges"] else ""
    return (
        f"{format_size(moved['bytes'])} to {summary['device']} by {summary['policy']}, "
        f"{short_count(moved['requests'])} requests{hits}; {moved['modelled']:.6f} s modelled"
    )


def batches(count: int) -> str:
    return f"{count:,} batch{'' if count == 1 else 'es'}"


def brief(report: BatchReport) -> str:
    """The live line."""
    rates = pace(report.rate, report.arrival_rate, report.keeps_up)
    return (
        f"batch {report.number:,}: {counted(report.changes, 'change')} in {1e3 * report.seconds['total']:.1f} "
        f"ms, {rates}"
    )


def line_of(report: BatchReport) -> str:
    """One batch for people and logs."""
    split = ", ".join(f"{part} {1e3 * report.seconds[part]:.1f}" for part in ("update", "correction", "computation"))
    affected, edges = (sum(effort[what] for effort in report.programs.values()) for what in ("affected", "edges_read"))
    return (
        f"batch {report.number}: {counted(report.changes, 'change')} in {1e3 * report.seconds['total']:.1f} ms "
        f"({split}), {affected:,} affected, {counted(edges, 'edge')} read, "
        f"{pace(report.rate, report.arrival_rate, report.keeps_up)}"
    )


def pace(rate: float, arriving: float | None, keeps_up: bool | None) -> str:
    text = f"{short_count(rate)} changes/s"
    if arriving is None:
        return text
    return f"{text}; {short_count(arriving)}/s arrive{'' if keeps_up else ', it falls behind'}"
