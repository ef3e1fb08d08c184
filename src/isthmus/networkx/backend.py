"""The backend as NetworkX sees it: an object with the claimed functions, the conversions and `can_run`."""

from __future__ import annotations

from typing import Any

# Imported for their claims.
from isthmus.networkx import centrality, component_functions, path_functions, reach, spanning  # noqa: F401
from isthmus.networkx import triangle_functions as _  # noqa: F401
from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import CLAIMS
from isthmus.networkx.conversions import convert_from_nx, convert_to_nx
from isthmus.networkx.networkx_suite import on_start_tests

FEW_EDGES = 10_000  # measured: below, NetworkX is faster than most conversions, and takes less than 30 ms for any call


class Backend:
    """The object that the entry point `networkx.backends` names."""

    convert_from_nx = staticmethod(convert_from_nx)
    convert_to_nx = staticmethod(convert_to_nx)
    on_start_tests = staticmethod(on_start_tests)

    def __getattr__(self, name: str) -> Any:
        if name not in CLAIMS:
            raise AttributeError(f"the backend isthmus has no function {name!r}")
        return CLAIMS[name].function

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *CLAIMS])

    def can_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """True if the backend supports a call, otherwise the reason why not."""
        if name not in CLAIMS:
            return f"{name} is not supported"
        return CLAIMS[name].refusal(args, kwargs) or True

    def should_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Whether a call that NetworkX may direct here by its configuration is worth a conversion, or why not."""
        graph = kwargs["G"] if "G" in kwargs else args[0]
        edges = 0 if isinstance(graph, BackendGraph) else graph.number_of_edges()
        if not isinstance(graph, BackendGraph) and edges < FEW_EDGES:
            return f"a graph of {edges} edges is small: converting it would take as long as NetworkX does"
        return True


BACKEND = Backend()
