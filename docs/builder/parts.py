"""The picture in docs/architecture.md: the parts of the package, and which part imports which, read from the source.

    python docs/builder/parts.py        # writes docs/parts.svg

An arrow points from a part to one that it imports. Arrows that follow from others are left out: if stream imports
runtime and runtime imports link, the arrow from stream to link is not drawn. A test compares the file with the source.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE, PICTURE = ROOT / "src" / "isthmus", ROOT / "docs" / "parts.svg"
BASE = ("checks", "errors", "memory", "messages", "plugins", "progress", "sizes", "threads")  # one box
WORDS = {
    "base": "errors, memory, threads, plugins",
    "kernels": "compiled loops over arrays",
    "graph": "stores, lists, changing graphs",
    "link": "how far memory is read",
    "frontier": "active vertices",
    "programs": "what is computed",
    "engines": "how edges reach a kernel",
    "cache": "which edges stay near",
    "policies": "which engine for which partition",
    "schedule": "which unit comes next",
    "devices": "where it happens",
    "runtime": "sessions, loop, executor, results",
    "stream": "graphs that change",
    "networkx": "the NetworkX backend",
    "report": "pages for people",
    "cli": "the shell",
}
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 200, 50, 30, 34, 12


def part_of(module: str) -> str:
    return "base" if module in BASE else module


def imports() -> dict[str, set[str]]:
    """The parts that each part imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        mine = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if mine == "__init__":
            continue
        others = found.setdefault(part_of(mine), set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("isthmus"):
                words = node.module.split(".")[1:]
                others |= {part_of(words[0])} if words else {part_of(alias.name) for alias in node.names}
    known = set(found)
    return {part: (others & known) - {part} for part, others in found.items()}


def reachable(parts: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for other in parts[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def direct(parts: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others."""
    beyond = {part: reachable(parts, part) for part in parts}
    return {part: {o for o in others if not any(o in beyond[k] for k in others)} for part, others in parts.items()}


def levels(parts: dict[str, set[str]]) -> dict[str, int]:
    """How many imports lie between a part and the bottom, at most."""
    found: dict[str, int] = {}

    def level(part: str) -> int:
        if part not in found:
            found[part] = 1 + max((level(other) for other in parts[part]), default=-1)
        return found[part]

    for part in parts:
        level(part)
    return found


def drawn(parts: dict[str, set[str]]) -> str:
    """The picture as SVG."""
    height_of, arrows = levels(parts), direct(parts)
    top = max(height_of.values())
    rows = [sorted(part for part in parts if height_of[part] == level) for level in range(top, -1, -1)]
    widest = max(len(row) for row in rows)
    full = widest * WIDTH + (widest - 1) * ACROSS + 2 * MARGIN
    places = {}
    for y, row in enumerate(rows):
        left = (full - len(row) * WIDTH - (len(row) - 1) * ACROSS) / 2
        for x, part in enumerate(row):
            places[part] = (left + x * (WIDTH + ACROSS), MARGIN + y * (HEIGHT + DOWN))
    tall = MARGIN * 2 + len(rows) * (HEIGHT + DOWN) - DOWN
    lines = [arrow(places[part], places[other]) for part in sorted(arrows) for other in sorted(arrows[part])]
    boxes = [box(part, *places[part]) for part in sorted(parts)]
    return HEAD.format(width=f"{full:g}", height=f"{tall:g}") + "\n".join([*lines, *boxes]) + "\n</svg>\n"


def arrow(above: tuple[float, float], below: tuple[float, float]) -> str:
    x1, y1, x2, y2 = above[0] + WIDTH / 2, above[1] + HEIGHT, below[0] + WIDTH / 2, below[1] - 3
    bend = (y2 - y1) / 2
    return f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}" marker-end="url(#tip)"/>'


def box(part: str, x: float, y: float) -> str:
    name, words = ("base", WORDS["base"]) if part == "base" else (f"{part}/", WORDS[part])
    name = part if part in ("frontier", "base") else name
    middle = x + WIDTH / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n'
        f'<text class="name" x="{middle:g}" y="{y + 21:g}">{name}</text>\n'
        f'<text x="{middle:g}" y="{y + 39:g}">{words}</text>'
    )


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>
rect {{ fill: #eef3f8; stroke: #50708f; }} text {{ font: 11px sans-serif; text-anchor: middle; fill: #333; }}
.name {{ font: bold 14px sans-serif; fill: #123; }} path {{ fill: none; stroke: #8aa0b4; stroke-width: 1.3; }}
marker path {{ fill: #8aa0b4; stroke: none; }}
</style>
<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="5" refY="4" orient="auto">
<path d="M0 1L7 4L0 7z"/></marker></defs>
"""


if __name__ == "__main__":
    PICTURE.write_text(drawn(imports()), "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
