"""Algorithms by name: those of this folder, and those of other packages (entry points `isthmus.algorithms`)."""

from __future__ import annotations

from isthmus.plugins import Catalogue
from isthmus.programs.algorithm import Algorithm

ALGORITHMS: Catalogue[Algorithm] = Catalogue(
    "algorithm", "isthmus.programs.algorithms", "algorithm", lambda part: isinstance(part, Algorithm)
)
