"""Matplotlib's SVG prepared for a page: small, coloured by the page's style sheet, with unique ids."""

from __future__ import annotations

import html
import io
import re
from typing import Any

# Placeholders for the page's own colours, which follow the reader's theme.
INK, FAINT, GRID = "#010203", "#040506", "#070809"
VARIABLES = {INK: "var(--ink)", FAINT: "var(--faint)", GRID: "var(--line)"}


def inline(figure: Any, name: str, label: str) -> str:
    """The figure as an <svg> element; `name` is unique in its page, `label` says what it shows."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    body = text[text.index(">", text.index("<svg")) + 1 :]
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = own_ids(body, name)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)  # the page says which font
    for color, variable in VARIABLES.items():
        body = body.replace(color, variable)
    body = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), body)  # positions, and no labels
    body = re.sub(r">\s+<", "><", body).replace("\n", " ")
    return f'<svg viewBox="{box[1]}" role="img" aria-label="{html.escape(label)}">{body}'


def own_ids(body: str, name: str) -> str:
    """Keep the ids that are referred to, and make them unique in the page."""
    used = set(re.findall(r"url\(#([^)]+)\)", body)) | set(re.findall(r'xlink:href="#([^"]+)"', body))
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    return re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', body)
