"""Colours that everyone can tell apart, on light ground and on dark; figures that follow the page's theme."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from isthmus.engines.registry import NAMES, colour_of
from isthmus.policies.recipes import RECIPES
from isthmus.report import draw
from isthmus.report.series import series
from isthmus.report.svg import FAINT, GRID, INK, inline, own_ids
from isthmus.report.template import STYLE
from isthmus.report.time_parts import PARTS
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace

# Severe protanopia and deuteranopia, in linear RGB (Machado, Oliveira and Fernandes 2009).
SIGHT = {
    "all cones": np.eye(3),
    "no long cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no middle cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color):
    """Linear RGB of '#rrggbb'."""
    parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    """As WCAG defines it."""
    a, b = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, two)), reverse=True)
    return (a + 0.05) / (b + 0.05)


def lab(rgb):
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


COLORS = {engine: colour_of(engine) for engine in NAMES.values()}


def variables():
    """The style sheet's colours: of the light theme, then of the dark one."""
    themes = re.findall(r":root \{([^}]*)\}", STYLE.read_text())
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme)) for theme in themes]


def test_every_engine_has_a_colour_of_its_own():
    assert len(set(COLORS.values())) == len(COLORS) == len(NAMES)


def test_one_colour_means_one_thing():
    """No part of the time has the colour of an engine; what is neither is drawn in the page's own colours."""
    for theme in variables():
        own = [*theme.values()]
        assert len({*COLORS.values(), *draw.SECONDS.values()}) == len(COLORS) + len(draw.SECONDS)
        assert not {*COLORS.values(), *draw.SECONDS.values()} & {*own}
    for one, two in itertools.product(COLORS.values(), draw.SECONDS.values()):
        assert np.linalg.norm(lab(linear(one)) - lab(linear(two))) > 17, f"{one} and {two}"
    assert [color for color, _ in draw.ACTIVE.values()] == [INK, INK]
    assert len({dash for _, dash in draw.ACTIVE.values()}) == 2
    assert set(draw.SECONDS) == set(PARTS)


@pytest.mark.parametrize("colors", [COLORS, draw.SECONDS], ids=["engines", "seconds"])
def test_colours_stand_out_from_both_grounds(colors):
    assert len(variables()) == 2
    for theme in variables():
        for color in colors.values():
            assert contrast(color, theme["panel"]) >= 3


def test_text_is_legible_in_both_themes():
    for theme in variables():
        for text in ("ink", "faint", "best"):
            assert contrast(theme[text], theme["panel"]) >= 4.5
            assert contrast(theme[text], theme["ground"]) >= 4.5


@pytest.mark.parametrize("sight", list(SIGHT))
@pytest.mark.parametrize("colors", [COLORS, draw.SECONDS], ids=["engines", "seconds"])
def test_colours_differ_for_every_eye(colors, sight):
    seen = {name: lab(SIGHT[sight] @ linear(color)) for name, color in colors.items()}
    for one, two in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[two]) > 20, f"{one} and {two}"


def test_recipes_have_lines_of_their_own():
    lines = {draw.line(name) for name in RECIPES}
    assert len(lines) == len(RECIPES)
    assert draw.OTHER not in lines
    assert draw.line("unified:read-mostly") == draw.line("nobody's") == draw.OTHER


def test_lines_that_lie_on_each_other_are_told_apart():
    marks = [draw.told_apart(at, 8, 61) for at in range(8)]
    assert len({mark["marker"] for mark in marks}) == 8
    assert len({mark["markevery"] for mark in marks}) == 8
    widths = [mark["linewidth"] for mark in marks]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 8
    trace = series(Trace([Iteration(k, 1, 1) for k in range(9)]))
    both = draw.growing("x", "bytes", {name: (trace, np.ones(9)) for name in ("filter", "subway")}, "B")
    assert draw.line("filter")[0] in both and draw.line("subway")[0] in both
    assert draw.told_apart(0, 1, 61) == {"linewidth": 1.8}


def test_figures_use_the_colours_of_the_page_and_have_their_own_ids():
    trace = Trace([Iteration(k, k + 1, 2 * k + 2) for k in range(30)])
    one, two = (draw.active(name, series(trace)) for name in ("one", "two"))
    for color in (INK, FAINT, GRID):
        assert color not in one
    assert "var(--faint)" in one
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, known in zip((one, two), ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg)) <= known
    assert one.replace("one-", "two-") == two, "drawing twice gives the same figure"


def test_labels_are_escaped():
    from matplotlib.figure import Figure

    assert 'aria-label="&lt;a&gt; &quot;b&quot;"' in inline(Figure(), "x", '<a> "b"')
    assert own_ids('<a id="p"/><b id="q"/><use xlink:href="#p"/>', "x") == '<a id="x-p"/><b/><use href="#x-p"/>'


def test_labels_keep_their_digits():
    with draw.empty("share") as (figure, ax):
        ax.set_yticks([0.0001, 0.12345], ["0.0001", "0.12345"])
        text = inline(figure, "x", "y")
    assert ">0.0001<" in text and ">0.12345<" in text and not re.search(r'="[^"]*\d\.\d{3}', text), (
        "only positions are shortened"
    )


def test_legends_have_as_many_columns_as_fit():
    for name, columns in (("auto", 4), ("grapin-page", 4), ("grapin-recompute", 3), ("a" * 80, 1)):
        with draw.empty("") as (figure, ax):
            for each in ("auto", "emogi", "grus", "filter", name):
                ax.plot([0, 1], label=each)
            draw.legend(figure, ["auto", name])
            assert figure.legends[0]._ncols == columns


def test_lines_over_batches_have_marks_of_their_recipe():
    """Marks are in the middle of columns, and the same in all figures, whichever recipes have values there."""
    bounds = np.array([0.5, 1.5, 2.5])
    xs, ys = draw.columns(bounds, np.array([3.0, 4.0]))
    assert (xs.tolist(), ys.tolist()) == ([0.5, 1, 1.5, 1.5, 2, 2.5], [3, 3, 3, 4, 4, 4])
    assert draw.in_columns(draw.told_apart(1, 2, 2))["markevery"] == (4, 3)
    assert draw.in_columns({"linewidth": 1.8}) == {"linewidth": 1.8}
    values = {"auto": np.array([0.0, 0.0]), "grapin": np.array([1.0, 2.0])}
    text = draw.by_batch("x", "bytes", 2, {name: (bounds, each, INK, "-") for name, each in values.items()}, "B")
    assert ">grapin</text>" in text and ">auto</text>" not in text
