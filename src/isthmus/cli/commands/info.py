"""`isthmus info [STORE]`: a store's contents, or the devices of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import Json
from isthmus.errors import OptionError

StoreOrNone = Annotated[
    Path | None, typer.Argument(metavar="[STORE]", help="A store, NAME.isthmus.", show_default=False)
]
DevicesOption = Annotated[
    bool, typer.Option("--devices", help="List the devices, and why some of them cannot be used.")
]


def info(store: StoreOrNone = None, devices: DevicesOption = False, json: Json = False) -> None:
    """Show a store's contents, or the devices that there are."""
    if devices == (store is not None):
        raise OptionError("info: expected a store, such as graph.isthmus, or --devices")
    if store is None:
        show_devices(json)
    else:
        show_store(store, json)


def show_devices(as_json: bool) -> None:
    from isthmus.cli.console import facts, show_json
    from isthmus.devices.choose import listed

    found = listed()
    if as_json:
        show_json({"devices": [each.as_dict() for each in found]})
        return
    facts("devices", [(each.device, str(each)) for each in found])


def show_store(store: Path, as_json: bool) -> None:
    from isthmus.cli.console import facts, show_json
    from isthmus.cli.graph_summary import rows_of
    from isthmus.graph.graph import open_graph
    from isthmus.memory import format_size

    graph = open_graph(store)
    details = graph.info()
    if as_json:
        show_json(details)
        return
    rows = rows_of(graph)
    rows.append(("self loops", f"{details['self_loops']:,}"))
    rows.append(("on disk", format_size(details["store_bytes"])))
    rows += [
        (name, f"{part['count']:,} x {part['type']}, {format_size(part['bytes'])}")
        for name, part in details["sections"].items()
    ]
    facts(str(store), rows)


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(info)
