"""Stores made by hand: right checksums around whatever arrays a test wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.store import Store
from isthmus.graph.store.writer import StoreWriter

Forge = Callable[..., Store]


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """`forge(name, arrays, **members)` writes the arrays as they are; counts that are not given are worked out."""

    def write(name: str, arrays: dict[str, Any], **members: Any) -> Store:
        arrays = {section: np.asarray(array) for section, array in arrays.items()}
        n, arcs = arrays["out.offsets"].size - 1, arrays["out.targets"].size
        counts = {"vertices": n, "arcs": arcs, "edges": arcs, "directed": True, "ids": "dense", "parallel": True}
        members = {**counts, "weighted": "out.weights" in arrays, "in_edges": "in.offsets" in arrays, **members}
        with StoreWriter(tmp_path / f"{name}.isthmus", overwrite=True) as writer:
            for section, array in arrays.items():
                writer.section(section, array.dtype, array.size)
                writer.append(section, array)
            return writer.commit(Manifest(**members))

    return write
