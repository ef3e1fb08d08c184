"""The few kinds of error that Isthmus raises on purpose. Each knows the exit code the command line gives it."""

from __future__ import annotations


class IsthmusError(Exception):
    """Something the user can act on; the command line prints its text on one line, without a traceback."""

    exit_code = 1


class OptionError(IsthmusError, ValueError):
    """An option or argument that makes no sense."""

    exit_code = 2


class GraphFormatError(IsthmusError, ValueError):
    """An input that does not hold what its format promises."""

    exit_code = 3


class StoreError(IsthmusError):
    """A graph store that is missing, damaged, locked or cannot be written."""

    exit_code = 4


class BudgetError(IsthmusError):
    """A memory budget too small for the job."""

    exit_code = 5


class UnknownVertexError(IsthmusError, KeyError):
    """A vertex id that the graph does not have."""

    exit_code = 6

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0]) if self.args else ""


class ProgramError(IsthmusError):
    """A vertex program that breaks a rule or does not compile; the message quotes its line."""

    exit_code = 7


class PluginError(IsthmusError):
    """A part of another package that cannot be loaded, or is not what its entry point promises."""

    exit_code = 8
