"""Pages of `report/page.py` and `report/stream_page.py` in a real browser: they render in both themes, on a pipeline
and on a phone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Browser, find

import isthmus as ist
from isthmus.memory import format_size
from isthmus.report import page

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium on this machine; install it to see pages rendered")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[str]]]:
    """Pages of a run from far memory, of one in memory, of a comparison, and of one of streams, with what each must
    show.
    """
    folder = tmp_path_factory.mktemp("pages")
    with ist.generate("rmat", folder / "g.isthmus", scale=15, weights="1:20") as graph:
        runs = {name: ist.sssp(graph, 0, memory="10%", policy=name) for name in ("auto", "filter", "emogi")}
        near = ist.bfs(graph, 0)
        runs["auto"].report(folder / "far.html")
        near.report(folder / "near.html")
        page.write(folder / "all.html", runs, {"unified": "too little memory"})
        ist.make_workload(graph, folder / "w.parquet", batches=4, size=300, seed=1)
        streams = ist.compare_streams(graph, [ist.SSSP(source=0)], folder / "w.parquet", device="model:rtx2080ti")
        streams.report(folder / "streams.html")
    moved = streams.runs["auto"].transfer
    return {
        "far": (folder / "far.html", figures(runs["auto"].summary())),
        "near": (folder / "near.html", figures(near.summary())),
        "all": (folder / "all.html", figures(runs["filter"].summary())),
        "streams": (
            folder / "streams.html",
            [f"{moved.modelled:.6f}", format_size(moved.bytes), "Take ", "Answers agree"],
        ),
    }


def figures(summary: dict[str, Any]) -> list[str]:
    return [f"{summary['seconds']['total']:.3f}", format_size(summary["transfer"]["bytes"])]


def brightness(shot: bytes, box: tuple[int, int, int, int]) -> float:
    from PIL import Image

    pixels = Image.open(io.BytesIO(shot)).convert("L").crop(box)
    return sum(pixels.tobytes()) / (pixels.width * pixels.height)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("name", ["far", "near", "all", "streams"])
def test_a_page_renders(browser: Browser, pages: Any, name: str, width: int, theme: str) -> None:
    path, expected = pages[name]
    browser.open(path, width, theme)
    assert browser.said("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled") == []
    asked = {request["request"]["url"].partition(":")[0] for request in browser.said("Network.requestWillBeSent")}
    assert asked <= {"file", "data"}, "nothing comes from elsewhere"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, "nobody scrolls sideways"
    text = browser.evaluate("document.body.innerText")
    assert [each for each in expected if each not in text] == []
    drawn = browser.evaluate(
        "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    assert len(drawn) >= 2
    assert all(w > 250 and h > 100 for w, h in drawn)
    images = "Promise.all([...document.querySelectorAll('svg image')].map(i => i.decode())).then(all => all.length)"
    decoded = browser.ask("Runtime.evaluate", expression=images, awaitPromise=True, returnByValue=True)
    assert decoded["result"].get("value") == {"far": 1, "near": 0, "all": 3, "streams": 0}[name]


@pytest.mark.parametrize("name", ["far", "near", "all", "streams"])
def test_light_is_light_and_dark_is_dark(browser: Browser, pages: Any, name: str) -> None:
    shown = {}
    for theme in ("light", "dark"):
        browser.open(pages[name][0], 1200, theme)
        shown[theme] = browser.screenshot()
        ink, faint, fill = browser.evaluate(
            "[document.querySelector('h1'), document.querySelector('svg text'), document.body]"
            ".map((e, k) => getComputedStyle(e)[['color', 'fill', 'backgroundColor'][k]])"
        )
        assert ink != fill
        assert faint != fill
    corner = (0, 0, 8, 200)
    assert brightness(shown["light"], corner) > 250
    assert brightness(shown["dark"], corner) < 30
    from PIL import Image

    sizes = {Image.open(io.BytesIO(shot)).size for shot in shown.values()}
    assert len(sizes) == 1, "themes change colours, not the layout"


@pytest.mark.parametrize("name", ["far", "streams"])
def test_text_in_figures_is_large_enough_on_a_phone(browser: Browser, pages: Any, name: str) -> None:
    browser.open(pages[name][0], 360)
    heights = browser.evaluate("[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)")
    assert min(heights) >= 8


@pytest.mark.parametrize("name", ["all", "streams"])
def test_labels_stay_inside_their_figures(browser: Browser, pages: Any, name: str) -> None:
    browser.open(pages[name][0], 360)
    outside = browser.evaluate(
        "[...document.querySelectorAll('svg')].flatMap(s => { const b = s.getBoundingClientRect();"
        " return [...s.querySelectorAll('text')].filter(t => { const r = t.getBoundingClientRect();"
        " return r.left < b.left - 3 || r.right > b.right + 3; }).map(t => t.textContent); })"
    )
    assert outside == []
