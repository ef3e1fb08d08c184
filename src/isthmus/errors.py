"""The kinds of error that Isthmus raises on purpose, each with its exit code on the command line, and its warning."""

from __future__ import annotations


class IsthmusError(Exception):
    """Something the user can act on; the command line prints its text on one line, without a traceback."""

    exit_code = 1


class OptionError(IsthmusError, ValueError):
    """An invalid option or argument."""

    exit_code = 2


class NotOnGpu(OptionError):
    """Something that does not run on a GPU yet; `device="auto"` then uses the processor."""


class GraphFormatError(IsthmusError, ValueError):
    """An input that does not follow its format."""

    exit_code = 3


class StoreError(IsthmusError):
    """A graph store that is missing, damaged, locked or cannot be written."""

    exit_code = 4


class BudgetError(IsthmusError):
    """A memory budget too small for the run."""

    exit_code = 5


class UnknownVertexError(IsthmusError, KeyError):
    """A vertex id that the graph does not have."""

    exit_code = 6

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0]) if self.args else ""


class ProgramError(IsthmusError):
    """A vertex program that breaks a rule or does not compile; the message quotes its line."""

    exit_code = 7


class BatchError(IsthmusError, ValueError):
    """A batch of changes that cannot be applied; the graph and all results are as before."""

    exit_code = 3


class PluginError(IsthmusError):
    """A plugin that cannot be loaded, or is not of the kind that its entry point declares."""

    exit_code = 8


class NoPathError(IsthmusError):
    """A vertex that no path leads to."""

    exit_code = 9


class IsthmusWarning(UserWarning):
    """Something about an answer that the user should know, such as that every edge counts as 1 because the graph has no
    weights.
    """
