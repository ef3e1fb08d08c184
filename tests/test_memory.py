"""Sizes, the RAM there is, and the ledger."""

from __future__ import annotations

import threading

import pytest

from isthmus import memory
from isthmus.errors import BudgetError, OptionError
from isthmus.memory import Budget, available, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MB", 512 * 10**6),
        ("2GiB", 2 * 2**30),
        ("1.5gib", 3 * 2**29),
        (" 10 kB ", 10_000),
        (".5k", 500),
        ("7", 7),
        ("7b", 7),
        ("0", 0),
        (123, 123),
        ("1t", 10**12),
        ("9007199254740993", 2**53 + 1),  # not by way of a float
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MB", "-5MB", "5 apples", "1e9", "5.", "1,5GB", "٣MB", "10%", "nan", "inf", -1, True, None]
)
def test_sizes_that_are_none(text):
    with pytest.raises(OptionError, match=r"memory: expected a size such as 512MB, 2GB or 1.5GiB, or .* 10%, got"):
        parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1536, "1.54 kB"),
        (999_600, "1 MB"),
        (5 * 10**9, "5 GB"),
        (7 * 10**15, "7e+03 TB"),
    ],
)
def test_sizes_for_people(count, text):
    assert format_size(count) == text


# ---- what there is


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """An empty /sys/fs/cgroup, and a process in no group of it."""
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUP", tmp_path / "own")
    return tmp_path


def test_without_groups_it_is_what_the_kernel_says(cgroups):
    assert 10**6 < available() < 2**62


@pytest.mark.parametrize(
    ("limit", "used"), [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
)
@pytest.mark.parametrize("inside", ["", "user/job"])
def test_a_group_limits_it(cgroups, limit, used, inside):
    old = limit != "memory.max"
    folder = (cgroups / "memory" if old else cgroups) / inside
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit).write_text("1000000\n")
    (folder / used).write_text("400000\n")
    (cgroups / "own").write_text(f"12:cpu:/other\n{'4:memory' if old else '0:'}:/{inside}\n")
    assert available() == 600_000


def test_a_group_around_ours_limits_it_too(cgroups):
    for name, limit in (("outer", "500"), ("outer/inner", "max")):
        (cgroups / name).mkdir()
        (cgroups / name / "memory.max").write_text(limit)
        (cgroups / name / "memory.current").write_text("100")
    (cgroups / "own").write_text("0::/outer/inner\n")
    assert available() == 400


def test_page_cache_that_can_be_dropped_is_free(cgroups):
    (cgroups / "memory.max").write_text("1000000")
    (cgroups / "memory.current").write_text("990000")
    (cgroups / "memory.stat").write_text("anon 5\ninactive_file 700000\nactive_file 3\n")
    assert available() == 710_000


def test_never_less_than_nothing(cgroups):
    (cgroups / "memory.max").write_text("10")
    (cgroups / "memory.current").write_text("50")
    assert available() == 0


def test_the_default_is_a_share_of_it(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    assert Budget().limit == 600


# ---- the ledger


def test_take_and_give_back():
    budget = Budget(100)
    assert budget.take(60) and not budget.take(41) and budget.take(40)
    assert (budget.taken, budget.left, budget.peak) == (100, 0, 100)
    budget.give_back(70)
    assert (budget.taken, budget.left, budget.peak) == (30, 70, 100)


def test_holding_gives_back_even_after_an_error():
    budget = Budget("1kB")
    with pytest.raises(ZeroDivisionError), budget.holding(700, "a thing"):
        assert budget.left == 300
        _ = 1 // 0
    assert (budget.taken, budget.peak) == (0, 700)


def test_holding_too_much_names_the_least_budget():
    budget = Budget("10MB")
    assert budget.take(4_000_000)
    message = r"the map needs 7 MB beside 4 MB already in use, but the budget is 10 MB; give memory='12MB' or more"
    with pytest.raises(BudgetError, match=message), budget.holding(7_000_000, "the map"):
        pass
    assert budget.taken == 4_000_000


def test_threads_never_take_more_than_there_is():
    budget = Budget(50)
    taken = []

    def work():
        for _ in range(200):
            if budget.take(1):
                taken.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == budget.taken == budget.peak == 50
