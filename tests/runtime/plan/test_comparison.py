"""Comparing recipes: they alternate, must agree, and one that fails does not take the others with it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError, UnknownVertexError
from isthmus.policies.recipes import RECIPES
from isthmus.runtime.plan.comparison import DisagreementError, compare, hits, mix


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("c") / "g.isthmus", scale=14, weights="1:20") as graph:
        yield graph


def test_every_recipe_runs_by_default(graph: Any) -> None:
    found = ist.compare(ist.sssp, graph, source=0, memory="10%", rounds=1)
    assert set(found.runs) | set(found.errors) == set(RECIPES)
    assert not found.errors
    summary = found.summary()
    assert [run["recipe"] for run in summary["runs"]] == list(RECIPES)
    assert summary["failed"] == []
    for run in summary["runs"]:
        assert run["algorithm"] == "sssp"
        assert run["graph"]["edges"] == graph.edges
        assert run["rounds"] == [run["seconds"]["total"]]
        assert run["result"] == summary["runs"][0]["result"]
    assert summary["fastest"] == min(summary["runs"], key=lambda run: run["seconds"]["total"])["recipe"]


def fake(
    graph: Any, log: list[str], fail: dict[str, Exception] | None = None, wrong: str = "", seconds: Any = None
) -> Any:
    """An algorithm that logs its recipe, fails for some, and is wrong for one."""

    def algorithm(graph: Any, policy: str, **how: Any) -> Any:
        log.append(policy)
        if fail and policy in fail:
            raise fail[policy]
        result = ist.bfs(graph, 0)
        if seconds is not None:
            result._facts["seconds"]["total"] = next(seconds)
        if policy == wrong:
            result.raw("distance")[9] += 1
        return result

    return algorithm


def test_recipes_alternate(graph: Any) -> None:
    log: list[str] = []
    seen: list[tuple[str, int]] = []
    compare(
        fake(graph, log),
        graph,
        policies=["filter", "emogi"],
        rounds=2,
        begin=lambda recipe, number: seen.append((recipe, number)),
    )
    assert log == ["filter", "emogi"] * 2
    assert seen == [("filter", 1), ("emogi", 1), ("filter", 2), ("emogi", 2)]


def test_a_single_round_is_warmed_up(graph: Any) -> None:
    log: list[str] = []
    found = compare(
        fake(graph, log, {"auto": BudgetError("too small")}), graph, policies=["auto", "filter", "emogi"], rounds=1
    )
    assert log == ["auto", "filter", "emogi", "filter", "emogi"], "each recipe has loops of its own to compile"
    assert list(found.runs) == ["filter", "emogi"]
    assert [len(runs) for runs in found.rounds.values()] == [1, 1]


@pytest.mark.parametrize(("seconds", "median"), [([3, 1, 2], 2), ([4, 1, 2, 3], 2), ([5, 4], 4)])
def test_the_median_run_counts(graph: Any, seconds: list[float], median: float) -> None:
    found = compare(fake(graph, [], seconds=iter(seconds)), graph, policies=["auto"], rounds=len(seconds))
    assert found.summary()["runs"][0]["seconds"]["total"] == median
    assert found.summary()["runs"][0]["rounds"] == seconds


def test_the_fastest_has_the_least_median(graph: Any) -> None:
    found = compare(fake(graph, [], seconds=iter([1, 5, 9, 6, 8, 7])), graph, policies=["auto", "filter"], rounds=3)
    assert found.fastest == "filter", "auto's were 1, 9 and 8"


def test_a_recipe_that_fails_does_not_stop_the_others(graph: Any) -> None:
    log: list[str] = []
    found = compare(
        fake(graph, log, {"emogi": BudgetError("needs 5 MB")}), graph, policies=["emogi", "filter"], rounds=3
    )
    assert log == ["emogi", "filter", "filter", "filter"], "it is not tried again"
    assert list(found.runs) == ["filter"]
    assert found.summary()["failed"] == [{"recipe": "emogi", "error": "needs 5 MB"}]


def test_a_recipe_that_fails_later_has_no_run_at_all(graph: Any) -> None:
    calls: list[str] = []

    def algorithm(graph: Any, policy: str) -> Any:
        calls.append(policy)
        if policy == "emogi" and calls.count("emogi") == 2:
            raise StoreError("block 7 is damaged")
        return ist.bfs(graph, 0)

    found = compare(algorithm, graph, policies=["emogi", "filter"], rounds=3)
    assert list(found.runs) == ["filter"]
    assert list(found.errors) == ["emogi"]


def test_when_none_can_run_the_first_says_why(graph: Any) -> None:
    with pytest.raises(BudgetError, match="needs at least"):
        ist.compare(ist.bfs, graph, source=0, memory="1kB")


def test_mistakes_that_no_recipe_can_mend_are_raised_at_once(graph: Any) -> None:
    log: list[str] = []
    with pytest.raises(UnknownVertexError, match="no vertex 5"):
        compare(fake(graph, log, {"filter": UnknownVertexError("no vertex 5")}), graph, rounds=3)
    assert len(log) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ["fast"]}, "policy: expected one of"),
        ({"policies": []}, "policies: expected at least one recipe, got none"),
        ({"policies": [None]}, r"policies: expected names of recipes, got \[None\]"),
        ({"policies": 3}, "policies: expected names of recipes, got 3"),
        ({"rounds": 0}, "rounds: expected at least 1, got 0"),
        ({"rounds": "2"}, "rounds: expected a whole number, got '2'"),
        ({"tolerance": "x"}, "tolerance: expected a number of at least 0, got 'x'"),
        ({"policy": "auto"}, r"compare: expected policies=\['auto'\], a list of recipes, got policy='auto'"),
    ],
)
def test_options_that_make_no_sense(graph: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ist.compare(ist.bfs, graph, source=0, **options)


def test_a_wrong_answer_is_found_and_named(graph: Any) -> None:
    right = int(ist.bfs(graph, 0).values[9])
    with pytest.raises(
        DisagreementError, match=f"bfs: filter and emogi disagree: distance of vertex 9 is {right} against {right + 1}"
    ):
        compare(fake(graph, [], wrong="emogi"), graph, policies=["filter", "emogi"], rounds=1)
    assert DisagreementError.exit_code != 0


def test_ranks_agree_within_their_bounds(graph: Any) -> None:
    found = ist.compare(ist.pagerank, graph, tol=1e-4, memory="10%", policies=["filter", "emogi"], rounds=1)
    assert set(found.runs) == {"filter", "emogi"}


def test_a_program_of_ones_own(graph: Any) -> None:
    @ist.monotone(initial=2**31, combine="min", start=0)
    def hops(value: Any) -> Any:
        return value + 1

    found = ist.compare(
        functools.partial(ist.run, hops(source=0)), graph, memory="10%", policies=["filter", "emogi"], rounds=1
    )
    assert found.summary()["runs"][0]["algorithm"] == "hops"


def test_answers_are_let_go(graph: Any) -> None:
    """Beside the first, no run's columns stay in memory."""
    import gc
    import weakref

    alive: list[Any] = []

    def algorithm(graph: Any, policy: str) -> Any:
        gc.collect()
        assert sum(reference() is not None for reference in alive) <= 1
        result = ist.bfs(graph, 0)
        alive.append(weakref.ref(result.raw("distance")))
        return result

    compare(algorithm, graph, policies=["filter", "emogi", "auto"], rounds=2)
    assert len(alive) == 6


def test_words_for_tables() -> None:
    use = {"tasks": 1, "requests": 1}
    engines = {"filter": {**use, "bytes": 30}, "zero_copy": {**use, "bytes": 970}, "cache": {**use, "bytes": 0}}
    facts = {"engines": engines, "transfer": {"bytes": 1000}, "cache": {"hit_edges": 1, "miss_edges": 3}}
    assert mix(facts) == "zero-copy 97 %, filter 3 %"
    assert hits(facts) == "25.0 %"
    near = {
        "engines": {"resident": {**use, "bytes": 0}},
        "transfer": {"bytes": 0},
        "cache": {"hit_edges": 0, "miss_edges": 0},
    }
    assert (mix(near), hits(near)) == ("resident", "-")


def test_a_report_of_a_comparison(graph: Any, tmp_path: Any) -> None:
    found = ist.compare(ist.bfs, graph, source=0, memory="10%", policies=["filter", "emogi"], rounds=1)
    found.errors["auto"] = BudgetError("too small")
    found.report(tmp_path / "all.html")
    text = (tmp_path / "all.html").read_text()
    assert "auto failed: too small" in text
    assert f"{found.runs['filter'].seconds:.3f}" in text
