"""The order of the pages in the site. README.md is the front page; every other page is in one of these groups."""

from __future__ import annotations

GROUPS: dict[str, tuple[str, ...]] = {
    "User guide": (
        "docs/guide/install",
        "docs/guide/first-run",
        "docs/guide/budgets",
        "docs/guide/recipes",
        "docs/guide/reports",
        "docs/guide/first-program",
        "docs/guide/first-stream",
        "docs/guide/troubleshooting",
        "docs/coming-from",
    ),
    "In detail": (
        "docs/jobs",
        "docs/algorithms",
        "docs/formats",
        "docs/programs",
        "docs/streaming",
        "docs/compare",
        "docs/calibration",
        "docs/checkpoints",
        "docs/networkx",
        "docs/plugins",
        "docs/model",
        "docs/gpu",
    ),
    "Reference": (
        "docs/reference/graphs",
        "docs/reference/algorithms",
        "docs/reference/runs",
        "docs/reference/programs",
        "docs/reference/streams",
        "docs/reference/errors",
        "docs/reference/shell",
    ),
    "Inside": (
        "docs/architecture",
        "docs/decisions",
        "docs/benchmarks",
        "docs/papers",
        "docs/reliability",
        "docs/testing",
        "CONTRIBUTING",
        "CHANGELOG",
    ),
}


def toctrees() -> str:
    """The groups in Sphinx's words. They are added to the front page when the site is built, so that README.md has none
    of this.
    """
    return "\n".join(
        "\n".join(["```{toctree}", ":hidden:", f":caption: {name}", "", *pages, "```", ""])
        for name, pages in GROUPS.items()
    )
