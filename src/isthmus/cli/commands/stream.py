"""`isthmus stream`: a group of commands, of which one needs no name: `isthmus stream STORE` follows updates."""

from __future__ import annotations

from typing import Any

import typer

from isthmus.cli import help_lists
from isthmus.cli.commands.stream_compare import compare
from isthmus.cli.commands.stream_follow import follow
from isthmus.cli.commands.stream_workload import make_workload
from isthmus.cli.signatures import command_of

FOLLOW = "follow"  # the command that is meant where no other one is named


class Command(help_lists.Command):
    """The command that has no name of its own."""

    def get_usage(self, ctx: Any) -> str:
        return super().get_usage(ctx).replace("  ", " ")


class Group(help_lists.Group):
    """A group with a command that is meant where the first word names no other."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [FOLLOW, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return ("" if name == FOLLOW else name), command, rest


def register(app: typer.Typer) -> None:
    group = typer.Typer(cls=Group, help="Follow changes of a graph, and keep the answers of algorithms current.")

    @group.callback()
    def nothing_first() -> None:
        pass

    group.command(FOLLOW, cls=Command, hidden=True, no_args_is_help=True)(command_of(follow))
    group.command("compare", cls=help_lists.Command, no_args_is_help=True)(command_of(compare))
    group.command("make-workload", cls=help_lists.Command, no_args_is_help=True)(make_workload)
    app.add_typer(group, name="stream")
