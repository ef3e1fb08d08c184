"""Checks and notes about weights, the same for all algorithms that read them."""

from __future__ import annotations

from isthmus.errors import OptionError
from isthmus.programs.algorithm import Runner


def no_negative_weights(run: Runner, name: str) -> None:
    if run.graph.weighted and run.graph.negative_weights:
        raise OptionError(f"{name} needs weights of at least 0, and {run.graph} has negative ones")


def need_weights(run: Runner, weight: bool, name: str) -> None:
    """Refuse a graph without weights, or with negative ones, if the caller asked for them by `weight`."""
    if weight and not run.graph.weighted:
        raise OptionError(f"weight: {run.graph} has no weights")
    if weight:
        no_negative_weights(run, name)


def note_unweighted(run: Runner) -> None:
    if not run.graph.weighted:
        run.note("the graph has no weights: every edge counts as 1")
