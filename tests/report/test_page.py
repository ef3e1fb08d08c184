"""The page: it holds the run's own numbers, loads nothing, and stays small."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.errors import OptionError, StoreError
from isthmus.memory import format_size
from isthmus.report import page
from isthmus.runtime.trace.trace import Trace

VOID = {"meta", "br", "path", "use", "image", "rect"}
AIM = 300_000  # bytes


class Reader(HTMLParser):
    """Text, attributes and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("r") / "g.isthmus", scale=15, weights="1:20") as graph:
        yield graph


def written(run: Any, path: Path, *more: Any) -> tuple[str, Reader]:
    run.report(path, *more)
    text = path.read_text(encoding="utf-8")
    return text, Reader(text)


def check_alone(text: str, read: Reader) -> None:
    """Nothing is loaded from elsewhere, nothing is run, nothing is left open."""
    assert read.open == []
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    for tag, name, value in read.attributes:
        assert not name.startswith("on"), f"{tag} {name}"
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:image/png;base64,")), f"{tag} {name}={value}"
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    ids = [value for _, name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert len(text.encode()) < AIM


def titles(text: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", text)


@pytest.mark.parametrize("policy", ["filter", "emogi", "auto"])
def test_a_page_holds_the_numbers_of_its_run(graph: Any, tmp_path: Path, policy: str) -> None:
    result = ist.sssp(graph, 0, memory="10%", policy=policy)
    text, read = written(result, tmp_path / "run.html")
    check_alone(text, read)
    shown = " ".join(read.text)
    facts = result.summary()
    for figure in (
        f"{facts['seconds']['total']:.3f} s",
        f"{facts['iterations']:,}",
        f"{facts['transfer']['ratio']:.2f}",
        format_size(facts["transfer"]["bytes"]),
        f"in {facts['transfer']['requests']:,} requests",
        f"of a budget of {format_size(facts['memory']['budget'])}",
        f"device cpu, policy {policy}",
        "sssp on g.isthmus",
        str(facts["transfer"]["bytes"]),
        repr(facts["seconds"]["kernel"]),
        str(graph.path),
    ):
        assert figure in shown, figure
    for name, value in page.leaves(facts):
        assert name in shown
        assert value in shown
    head = f"Where {facts['seconds']['total']:.3f} s went"
    assert titles(text)[:6] == [head, "Result", "Top vertices", "Distribution", "Execution path", "Partitions"]
    assert {"Active", "Time", "Transfer", "Transfer so far", "Near memory", "Engines"} <= set(titles(text))
    for vertex, value in result.top(10):
        assert f'<tr><td>{vertex}</td><td class="number">{value:,}</td></tr>' in text
    assert "source 0, predecessors False, memory 10%" in shown
    for iteration in result.trace:
        assert f">{iteration.active_edges:,}<" in text


def test_the_memory_split_adds_up(graph: Any) -> None:
    facts = ist.sssp(graph, 0, memory="10%", policy="filter").summary()["memory"]
    rows = page.memory(facts)
    assert sum(size for _, size, _ in rows) == facts["budget"]
    assert sum(percent for _, _, percent in rows) == pytest.approx(100)
    assert {"state", "offsets", "frontier", "staging buffers", "rest"} <= {name for name, _, _ in rows}


def test_a_run_in_memory_says_that_nothing_moved(graph: Any, tmp_path: Path) -> None:
    text, read = written(ist.pagerank(graph), tmp_path / "run.html")
    check_alone(text, read)
    assert "All edges were in near memory, so no bytes moved" in text
    assert set(titles(text)[1:]) == {
        "Active",
        "Time",
        "Near memory",
        "Engines",
        "Result",
        "Top vertices",
        "Distribution",
    }
    assert "policy resident" in text
    assert {"edges"} <= {name for name, _, _ in page.memory(ist.pagerank(graph).summary()["memory"])}


@pytest.mark.parametrize("policy", ["filter", "auto"])
def test_the_parts_of_the_time_add_up(graph: Any, tmp_path: Path, policy: str) -> None:
    result = ist.sssp(graph, 0, memory="10%", policy=policy)
    rows = page.time_rows(result.summary()["seconds"], result.trace)
    assert sum(seconds for _, _, seconds, _ in rows) == pytest.approx(result.summary()["seconds"]["total"])
    assert sum(percent for _, _, _, percent in rows) == pytest.approx(100)
    text, _ = written(result, tmp_path / "run.html")
    for name, colour, seconds, _ in rows:
        assert f'background:{colour}"></i>{name} {seconds:.3f} s' in text


def test_components_are_shown_by_size(graph: Any, tmp_path: Path) -> None:
    result = ist.weakly_connected_components(graph)
    text, read = written(result, tmp_path / "run.html")
    check_alone(text, read)
    assert {"Largest components", "Distribution"} <= set(titles(text))
    (label, size), *_ = result.largest(1)
    assert f'<tr><td>{label}</td><td class="number">{size:,}</td></tr>' in text
    assert "How many components there are of each size." in text


def test_an_answer_about_edges_has_no_vertices(graph: Any, tmp_path: Path) -> None:
    text, read = written(ist.minimum_spanning_forest(graph), tmp_path / "run.html")
    check_alone(text, read)
    assert "Result" in titles(text) and "Top vertices" not in titles(text)


def test_a_graph_without_edges(tmp_path: Path) -> None:
    with ist.generate("path", vertices=1) as lonely:
        result = ist.bfs(lonely, 0)
        result.trace = Trace()
        text, read = written(result, tmp_path / "run.html")
    check_alone(text, read)
    assert "No iteration was needed." in text
    assert "a graph in memory" in text


def test_thousands_of_iterations_stay_small(tmp_path: Path) -> None:
    with ist.generate("grid", tmp_path / "g.isthmus", rows=1600, columns=4) as grid:
        result = ist.bfs(grid, 0, memory="10%", policy="emogi")
        assert len(result.trace) > 1000
        text, read = written(result, tmp_path / "run.html")
    check_alone(text, read)
    step = -(-len(result.trace) // 120)
    assert f"Columns are means of {step} iterations." in text
    rows = re.findall("<tr><td>([0-9]+)[^0-9<]([0-9]+)</td>", text)
    assert rows[0] == ("1", str(step))
    assert rows[-1][1] == str(len(result.trace))
    assert len(rows) <= 120


def test_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&\"'$x$"
    folder = tmp_path / "{{ 7 * 7 }} <b>"
    folder.mkdir()
    ist.generate("path", folder / "p.isthmus", vertices=9).close()
    with ist.open(folder / "p.isthmus") as graph:
        result = ist.bfs(graph, 0, memory="10%", policy="filter")
        result.summary()["algorithm"] = evil
        result.summary()["notes"] = [evil, "bytes that are no text: \udcff"]
        text, read = written(result, tmp_path / "run.html")
    check_alone(text, read)
    assert html.escape(evil).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in text
    assert "{{ 7 * 7 }} &lt;b&gt;" in text
    assert "49 " not in " ".join(read.text).split("p.isthmus")[0]
    assert "no text: \\udcff" in text


def test_several_runs_in_one_page(graph: Any, tmp_path: Path) -> None:
    runs = {name: ist.bfs(graph, 0, memory="10%", policy=name) for name in ("filter", "emogi")}
    page.write(tmp_path / "all.html", runs, {"unified": "needs <5 MB>"})
    text = (tmp_path / "all.html").read_text()
    read = Reader(text)
    check_alone(text, read)
    shown = " ".join(read.text)
    assert "device cpu, 3 recipes" in shown
    assert "unified failed: needs <5 MB>" in shown
    assert titles(text)[:2] == ["Transfer so far", "Time so far"]
    assert re.search(r'<p class="advice">Take (filter|emogi): it is .*\.</p>', text)
    assert re.findall("<h2>(.*?)</h2>", text) == ["All recipes", "Answer", "filter", "emogi"]
    assert "Top vertices" in shown and "The answers of all recipes agree" in shown
    for run in runs.values():
        assert f"{run.summary()['transfer']['ratio']:.2f}" in shown
        assert f"{run.summary()['seconds']['total']:.3f}" in shown
    assert "filter 100 %" in shown
    assert "zero-copy 100 %" in shown
    least = min(runs, key=lambda name: runs[name].summary()["transfer"]["requests"])
    assert f'best">{runs[least].summary()["transfer"]["requests"]:,}</td>' in text


def test_a_comparison_shows_the_answer_on_which_its_recipes_agree(graph: Any, tmp_path: Path) -> None:
    found = ist.compare(ist.pagerank, graph, memory="10%", policies=["filter", "emogi"], rounds=1)
    assert found.answer is not None
    found.report(tmp_path / "all.html")
    shown = " ".join(Reader((tmp_path / "all.html").read_text()).text)
    vertex, value = found.answer.top(1)[0]
    assert f"Top vertices vertex pagerank {vertex} {value:.6g}" in " ".join(shown.split())


def test_what_will_not_do_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"out\.pdf: expected a name that ends in \.html"):
        page.check(tmp_path / "out.pdf")
    with pytest.raises(OptionError, match="nowhere: no such folder"):
        page.check(tmp_path / "nowhere" / "out.html")
    assert page.check(tmp_path / "out.HTML") == tmp_path / "out.HTML"


def test_a_modelled_run_shows_modelled_seconds(graph: Any, tmp_path: Path) -> None:
    """The figures are in the same seconds as the headings beside them, not in those that modelling took here."""
    how: dict[str, Any] = {"memory": "10%", "device": "model:rtx2080ti"}
    runs = {name: ist.bfs(graph, 0, policy=name, **how) for name in ("filter", "emogi")}
    alone, read = written(runs["filter"], tmp_path / "run.html")
    shown = " ".join(read.text)
    assert "Modelled seconds in each iteration." in shown and "modelled seconds" in shown
    assert "I/O wait by" not in alone and "time by iteration: modelled" in alone
    for iteration in runs["filter"].trace:
        assert f">{iteration.modelled:.6f}<" in alone
    page.write(tmp_path / "all.html", runs)
    assert "Modelled seconds since the first iteration." in (tmp_path / "all.html").read_text()


def test_a_page_that_cannot_be_written_leaves_nothing(graph: Any, tmp_path: Path) -> None:
    (tmp_path / "run.html").mkdir()
    with pytest.raises(StoreError, match=r"run\.html: cannot write the report: "):
        ist.bfs(graph, 0).report(tmp_path / "run.html")
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_an_old_page_is_replaced(graph: Any, tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text("old")
    ist.bfs(graph, 0).report(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
