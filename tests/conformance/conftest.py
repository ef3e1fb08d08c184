"""What all conformance tests share: the graphs of a module's `CASES` are closed when its tests have run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def closing(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for case in getattr(request.module, "CASES", {}).values():
        for graph in case.graphs.values():
            graph.close()
        case.graphs.clear()  # a worker that comes back to the module makes them again
