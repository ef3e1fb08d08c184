"""The page of a comparison of streams: it holds the numbers of all recipes and batches, says which recipe to take, and
loads nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.test_page import Reader, check_alone, titles

import isthmus as ist
from isthmus.devices.residency import Transfer
from isthmus.errors import OptionError
from isthmus.memory import format_size
from isthmus.policies.stream_recipes import RECIPES, stream_recipe
from isthmus.report import stream_page
from isthmus.stream.stream_comparison import StreamComparison, StreamRun

DEVICE = "model:a5000"
ANSWER = ["Result", "Top vertices", "Distribution"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("streams")
    with ist.generate("rmat", folder / "g.isthmus", scale=11, weights="1:20", seed=1) as graph:
        ist.make_workload(graph, folder / "w.parquet", batches=5, size=200, seed=1)
        yield ist.compare_streams(graph, [ist.SSSP(source=0), ist.BFS(source=0)], folder / "w.parquet", device=DEVICE)


def test_a_page_holds_the_numbers_of_all_recipes(found: Any, tmp_path: Path) -> None:
    found.report(tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text(encoding="utf-8")
    read = Reader(text)
    check_alone(text, read)
    shown = " ".join(read.text)
    assert (
        "Recipes of streams on g.isthmus" in shown
        and "5 batches, 1,000 changes" in shown
        and "device model:a5000, memory 10%" in shown
    )
    assert found.advice in shown and "all recipes have the same sssp, bfs." in shown
    assert titles(text) == [*ANSWER, *ANSWER, "Time", "Transfer", "Requests", "Hits"]
    for recipe, run in found.runs.items():
        moved = run.transfer
        for figure in (
            recipe,
            f"{moved.modelled:.6f}",
            format_size(moved.bytes),
            f"{moved.requests:,}",
            f"{run.affected:,}",
            f"{run.edges_read:,}",
            format_size(run.near_peak),
            stream_recipe(recipe).words,
            repr(moved.modelled),
            "transfer.upkeep_bytes",
        ):
            assert figure in shown, (recipe, figure)
        for k in range(5):
            assert f">{run.by_batch['modelled'][k]:.6f}<" in text and f">{int(run.by_batch['requests'][k]):,}<" in text
        assert sum(run.by_batch["bytes"]) == moved.bytes and sum(run.by_batch["modelled"]) == pytest.approx(
            moved.modelled
        )
    least = min(run.transfer.bytes for run in found.runs.values())
    assert f'best">{format_size(least)}</td>' in text


def test_a_page_shows_the_answers_of_all_programs(found: Any, tmp_path: Path) -> None:
    found.report(tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert list(found.answers) == ["sssp", "bfs"]
    for program, result in found.answers.items():
        section = text[text.index(f"<h2>{program} after the last batch</h2>") :]
        rows = result.summary()["result"]
        assert f"<td>{rows['reached']:,}</td>" in section and found.summary()["answers"][program] == rows
        for vertex, value in result.top(10):
            assert f'<td>{vertex}</td><td class="number">{value:,}</td>' in section


def test_answers_of_other_kinds(tmp_path: Path) -> None:
    """Components are shown by their sizes, and answers by source by their largest values."""
    graph = ist.read((np.arange(9), np.arange(1, 10)), directed=False)
    table = {"op": ["delete"], "source": [3], "target": [4]}
    programs = [ist.WeaklyConnectedComponents(), ist.MultiSourceBFS(sources=[0, 9])]
    found = ist.compare_streams(graph, programs, table, device=DEVICE, policies=["auto"])
    found.report(tmp_path / "kinds.html")
    text = (tmp_path / "kinds.html").read_text()
    check_alone(text, Reader(text))
    assert "Largest components" in text and '<td>4</td><td class="number">6</td>' in text
    assert "multi_source_bfs after the last batch" in text


def compared(**runs: tuple[float, int, float]) -> StreamComparison:
    """A comparison of recipes: modelled seconds, bytes, and the share of hits of each."""
    found = StreamComparison(DEVICE, bandwidth=1e9)
    for name, (seconds, moved, hits) in runs.items():
        transfer = Transfer(moved, modelled=seconds, hit_edges=round(100 * hits), miss_edges=round(100 * (1 - hits)))
        found.runs[name.replace("_", "-")] = StreamRun(name.replace("_", "-"), batches=1, transfer=transfer)
    return found


def test_the_recipe_to_take() -> None:
    best = compared(auto=(0.001, 5_000, 0.62), grapin_zc=(0.002, 9_000, 0.0), grapin_page=(0.009, 90_000, 0.0)).advice
    assert best == (
        "Take auto: 1 ms modelled, 50 % less than grapin-zc, the next. It also moves the fewest bytes, 5 kB, as 62 % "
        "of the edges that it "
        "reads are near."
    )
    other = compared(auto=(0.0015, 5_000, 0.62), grapin_zc=(0.0012, 10_000, 0.0)).advice
    assert other.startswith(
        "Take grapin-zc: 1.2 ms modelled, 20 % less than auto, the next. auto moves 50 % fewer bytes, but "
    )
    assert "at the link's full rate its bytes would take less than 1 % of its time" in other
    slow = compared(auto=(0.0015, 600_000, 0.62), grapin_zc=(0.0012, 1_000_000, 0.0)).advice
    assert "its bytes would take 40 % of its time" in slow
    assert compared(auto=(0.001, 5, 0.0)).advice == "Only auto was run."
    assert compared(auto=(0.001, 5, 0.0), grapin=(0.001, 5, 0.0)).advice.startswith(
        "Take auto: 1 ms modelled, as long as grapin. It also"
    )
    nothing = compared(auto=(0.0, 0, 0.0), grapin=(0.0, 0, 0.0))
    for run in nothing.runs.values():
        run.batches = 0
    assert nothing.advice == "There was nothing to compare: no batches."


def test_thousands_of_batches_stay_small() -> None:
    columns = {
        name: [float(k) for k in range(1000)]
        for name in ("changes", "bytes", "requests", "hit_edges", "miss_edges", "modelled")
    }
    binned = stream_page.bins(columns)
    assert binned["sizes"].size <= 120 and binned["sizes"].sum() == 1000
    assert binned["bytes"][0] == np.mean(columns["bytes"][: int(binned["sizes"][0])])
    assert np.all(binned["hits"][1:] == 0.5)
    rows = stream_page.by_batch(binned)
    assert (rows[0]["first"], rows[-1]["last"]) == (1, 1000)


def test_no_batches(tmp_path: Path) -> None:
    graph = ist.read((np.arange(9), np.arange(1, 10)), directed=True)
    table = {"op": np.array([], "U1"), "source": np.array([], np.int64), "target": np.array([], np.int64)}
    found = ist.compare_streams(graph, [ist.BFS(source=0)], table, device=DEVICE, policies=["auto", "grapin-zc:resend"])
    found.report(tmp_path / "none.html")
    text = (tmp_path / "none.html").read_text()
    check_alone(text, Reader(text))
    assert "a graph in memory" in text and "no batches" in text and titles(text) == ANSWER


def test_recipes_have_lines_of_their_own() -> None:
    lines = {(recipe.colour, recipe.dash) for recipe in RECIPES.values()}
    assert len(lines) == len(RECIPES)
    variants = {
        (each.colour, each.dash)
        for each in (stream_recipe(f"{name}:resend") for name in RECIPES if name != "grapin-recompute")
    }
    assert not variants & lines


def test_what_will_not_do_is_said(found: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"out\.pdf: expected a name that ends in \.html"):
        found.report(tmp_path / "out.pdf")
    with pytest.raises(OptionError, match="report: expected a path"):
        found.report(7)
