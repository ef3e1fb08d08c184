"""What NetworkX loads when it is imported: a description, and nothing that takes time."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx

from isthmus.networkx.claims import CLAIMS
from isthmus.networkx.info import DEFAULTS, FUNCTIONS, backend_info

HEAVY = (
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "pyarrow",
    "matplotlib",
    "typer",
    "isthmus.graph",
    "isthmus.runtime",
    "isthmus.kernels",
)


def test_import_networkx_loads_no_more_than_the_description() -> None:
    code = (
        "import sys, networkx; print(*[name for name in sys.modules if name.startswith('isthmus')]); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    ours, all_modules = done.stdout.splitlines()
    assert set(ours.split()) == {"isthmus", "isthmus.stream", "isthmus.networkx", "isthmus.networkx.info"}
    assert not set(HEAVY) & set(all_modules.split())


def test_the_description_has_the_functions_of_the_backend() -> None:
    assert nx.utils.backends._load_backend("isthmus") is not None  # claims are declared when it is loaded
    assert list(FUNCTIONS) == sorted(CLAIMS)
    assert set(backend_info()["functions"]) == set(CLAIMS)


def test_networkx_knows_it() -> None:
    assert "isthmus" in nx.utils.backends.backends
    assert "isthmus" in nx.pagerank.backends
    assert "bounds the L1 error" in nx.pagerank.__doc__
    assert dict(nx.config.backends.isthmus) == DEFAULTS
