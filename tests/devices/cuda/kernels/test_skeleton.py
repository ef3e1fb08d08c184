"""The launch skeleton, run on the processor thread by thread: `devices/cuda/kernels/skeleton.py`,
`devices/cuda/kernels/rows.py`.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

from isthmus.devices.cuda.kernels import rows, skeleton
from isthmus.kernels.compile import cuda_module
from isthmus.link import requests

DEGREES = (0, 1, 31, 32, 33, 1023, 1024, 100_000)
COUNTING = """@called
def source(u, degree, state, params):
    return u


@called
def edge(x, u, v, w, state, params):
    atomic_add(state[0], v, 1)
    atomic_add(state[1], u, w)
    return x == u
"""
SUMMING = """@called
def nothing(params):
    return 0


@called
def sent(total, u, w, state, params):
    atomic_add(state[0], u, 1)
    return total + w


@called
def received(v, total, state, params):
    atomic_add(state[1], v, total)
"""
SEEKING = (
    COUNTING
    + """

@called
def found(u, v, state, params):
    atomic_add(state[2], u, 1)
    return v == params[0]
"""
)
Array = np.ndarray[Any, Any]


class Lists:
    """Lists of given degrees; edge e has the target e, so that counts of targets are counts of edges."""

    def __init__(self, degrees: tuple[int, ...], base: int = 0) -> None:
        self.offsets = base + np.concatenate([[0], np.cumsum(degrees)])
        self.degrees, self.count, self.total = np.array(degrees), len(degrees), int(self.offsets[-1])
        self.targets = np.arange(self.total, dtype=np.uint32)
        self.weights = np.arange(self.total, dtype=np.int64) % 7 + 1

    @property
    def arrays(self) -> tuple[Array, Array]:
        return self.offsets[:-1], self.offsets[1:]


class Sorted:
    """Rows by kind, as the kernels have them."""

    def __init__(self, room: int) -> None:
        self.room, self.counts = room, np.zeros(3, np.int64)
        self.vertices = np.zeros(3 * room, np.uint32)
        self.begins, self.weight_begins, self.lengths = (np.zeros(3 * room, np.int64) for _ in range(3))

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.vertices, self.begins, self.weight_begins, self.lengths, self.counts

    def of(self, kind: int) -> list[int]:
        return sorted(self.vertices[kind * self.room : kind * self.room + self.counts[kind]].tolist())


def sort(lists: Lists, active: Array, threads: int, begin: int = 0, end: int | None = None) -> Sorted:
    found = Sorted(lists.count)
    module = rows.build(gpu=False)
    end = lists.total if end is None else end
    module.sort_range(
        threads, 0, lists.count, begin, end, 0, 0, active, False, *lists.arrays, found.room, *found.arrays
    )
    return found


def run(
    kernel: Any,
    found: Sorted,
    lists: Lists,
    threads: int,
    state: tuple[Array, ...],
    params: tuple[int, ...] = (0,),
    widths: tuple[int, ...] = skeleton.WIDTHS,
) -> Array:
    marks = np.zeros(max(lists.total, lists.count), np.uint8)
    for kind, width in enumerate(widths):
        kernel(
            threads,
            kind,
            found.room,
            *found.arrays,
            width,
            32,
            *lists.arrays,
            lists.targets,
            lists.weights,
            state,
            state,
            params,
            marks,
        )
    return marks


@pytest.mark.parametrize("threads", [256, 512, 1024 + 256])
@pytest.mark.parametrize("base", [0, 5])
@pytest.mark.parametrize("widths", [skeleton.WIDTHS, skeleton.far_widths(32), skeleton.far_widths(16)])
def test_each_active_edge_is_pushed_exactly_once(threads: int, base: int, widths: tuple[int, ...]) -> None:
    lists = Lists(DEGREES * 3, base)
    active = np.arange(lists.count, dtype=np.int64) % 5 != 2
    found = sort(lists, active.astype(np.uint8), threads)
    module = skeleton.build("counting", COUNTING, weighted=True, pull=False, gpu=False)
    state = np.zeros(lists.total, np.int64), np.zeros(lists.count, np.int64)
    marks = run(module.push, found, lists, threads, state, widths=widths)
    expected = np.zeros(lists.total, np.int64)
    expected[base:] = np.repeat(active, lists.degrees)
    assert np.array_equal(state[0], expected)
    assert np.array_equal(marks[: lists.total], expected)
    sums = np.array([lists.weights[a:b].sum() for a, b in zip(*lists.arrays, strict=True)])
    assert np.array_equal(state[1], np.where(active, sums, 0))


@pytest.mark.parametrize("degree", DEGREES)
def test_a_row_gets_a_thread_a_warp_or_a_block_by_its_length(degree: int) -> None:
    found = sort(Lists((3, degree)), np.array([0, 1], np.uint8), 256)
    kind = 0 if degree < 32 else 1 if degree < 1024 else 2
    assert [found.of(k) for k in range(3)] == [[1] if k == kind and degree else [] for k in range(3)]


def test_only_the_edges_of_a_piece_are_followed() -> None:
    lists = Lists((10, 2000, 40))
    found = sort(lists, np.ones(3, np.uint8), 256, begin=7, end=2012)
    module = skeleton.build("counting", COUNTING, weighted=False, pull=False, gpu=False)
    state = np.zeros(lists.total, np.int64), np.zeros(3, np.int64)
    run(module.push, found, lists, 256, state)
    assert np.array_equal(np.flatnonzero(state[0]), np.arange(7, 2012))
    assert state[1].tolist() == [3, 2000, 2]  # without weights an edge counts 1


def test_given_rows_are_sorted_and_pushed_as_well() -> None:
    lists = Lists(DEGREES)
    found = Sorted(lists.count)
    given = np.array([7, 1, 3, 0], np.uint32)
    begins = lists.offsets[given]
    rows.build(gpu=False).sort_rows(256, given, begins, begins, lists.degrees[given], found.room, *found.arrays)
    assert [found.of(kind) for kind in range(3)] == [[1], [3], [7]]
    module = skeleton.build("counting", COUNTING, weighted=True, pull=False, gpu=False)
    state = np.zeros(lists.total, np.int64), np.zeros(lists.count, np.int64)
    run(module.push, found, lists, 256, state)
    assert state[0].sum() == lists.degrees[given].sum()
    assert state[0].max() == 1


@pytest.mark.parametrize("widths", [skeleton.WIDTHS, skeleton.far_widths(32)])
def test_totals_of_a_row_that_is_pulled_add_up(widths: tuple[int, ...]) -> None:
    lists = Lists(DEGREES)
    found = sort(lists, np.ones(lists.count, np.uint8), 512)
    module = skeleton.build("summing", SUMMING, weighted=True, pull=True, gpu=False)
    state = np.zeros(lists.total, np.int64), np.zeros(lists.count, np.int64)
    run(module.push, found, lists, 512, state, widths=widths)
    assert (state[0] == 1).all()
    assert np.array_equal(state[1], [lists.weights[a:b].sum() for a, b in zip(*lists.arrays, strict=True)])


def test_a_row_that_has_found_a_neighbour_is_marked_and_seeks_no_further() -> None:
    lists = Lists(DEGREES)
    found = sort(lists, np.ones(lists.count, np.uint8), 256)
    module = skeleton.build("seeking", SEEKING, weighted=False, pull=False, gpu=False)
    state = np.zeros(lists.total, np.int64), np.zeros(lists.count, np.int64), np.zeros(lists.count, np.int64)
    wanted = int(lists.offsets[4]) + 1  # the second edge of the row with 33
    marks = run(module.seek, found, lists, 256, state, (wanted,))
    assert np.flatnonzero(marks).tolist() == [4]
    looked = state[2].tolist()
    assert looked[4] == 3  # of lanes 0 and 32's edges: threads run one after the other, and the second finds it
    assert [looked[k] for k in (0, 1, 2, 3, 5, 6, 7)] == [lists.degrees[k] for k in (0, 1, 2, 3, 5, 6, 7)]


@pytest.mark.parametrize("begin", [0, 1, 31, 32, 33, 100])
def test_a_warp_reads_whole_aligned_lines(begin: int) -> None:
    module = skeleton.build("counting", COUNTING, weighted=False, pull=False, gpu=False)
    first = [int(module.first_turn.py_func(begin, lane, 32, 32)) for lane in range(32)]
    assert first == list(range(begin // 32 * 32, begin // 32 * 32 + 32))
    assert int(module.first_turn.py_func(begin, 0, 1, 32)) == begin


def requests_of(begin: int, degree: int, widths: tuple[int, ...], line: int, entry: int) -> list[int]:
    """Requests of 1 to 4 sectors by which the threads of a row read it: of a warp's one load, one for every line that
    it touches.
    """
    first_turn = skeleton.build("counting", COUNTING, weighted=False, pull=False, gpu=False).first_turn.py_func
    width = widths[0 if degree < 32 else 1 if degree < 1024 else 2]
    firsts = np.array([first_turn(begin, lane, width, line) for lane in range(width)])
    counts = [0] * 4
    for e in (firsts + turn for turn in range(0, degree + line + width, width)):
        for lanes in np.split(e, max(1, width // 32)):
            sectors = np.unique(lanes[(lanes >= begin) & (lanes < begin + degree)] * entry // 32)
            for of_line in np.unique(sectors // 4):
                counts[np.count_nonzero(sectors // 4 == of_line) - 1] += 1
    return counts


@pytest.mark.parametrize("degree", [degree for degree in DEGREES if degree])
@pytest.mark.parametrize("begin", [0, 1, 7, 8, 31, 32, 33, 127, 100_003])
@pytest.mark.parametrize(("entry", "other"), [(4, 0), (8, 0), (4, 8), (8, 4)])
def test_far_rows_are_read_by_whole_lines(degree: int, begin: int, entry: int, other: int) -> None:
    """As few requests as the model counts, whatever the length: in targets, and in weights of another width beside
    them.
    """
    line = skeleton.line_of(entry, other)
    for width in (entry, other) if other else (entry,):
        expected = requests.count(np.array([begin * width]), np.array([degree * width])).tolist()
        assert requests_of(begin, degree, skeleton.far_widths(line), line, width) == expected


def test_one_thread_would_request_every_entry() -> None:
    assert requests_of(1, 31, skeleton.far_widths(32), 32, 4) == [0, 0, 0, 1]
    assert requests_of(1, 31, skeleton.WIDTHS, 32, 4) == [31, 0, 0, 0]


FAR = 1 << 31  # entries, more than 32 bits with a sign can number


@pytest.fixture(scope="module")
def far_targets() -> Array:
    """Two gigabytes of zeros, of which only the pages that are used take memory."""
    return np.zeros(FAR + (1 << 20), np.uint8)


@pytest.mark.parametrize("degree", [1, 31, 33, 1023, 5000])
@pytest.mark.parametrize("before", [0, 1, 17, 5000])
def test_entries_beyond_two_to_the_31_are_followed_exactly_once(far_targets: Array, degree: int, before: int) -> None:
    """Lists that begin before entry 2^31 and end behind it, or lie behind it, from the sort to the last edge."""
    begin = FAR - before
    begins, ends = np.array([begin, FAR + 100_000]), np.array([begin + degree, FAR + 100_000 + degree])
    numbers = np.arange(degree, dtype=np.int64) % 251
    for first, last in zip(begins, ends, strict=True):
        far_targets[first:last] = numbers
    found = Sorted(2)
    rows.build(gpu=False).sort_range(
        256, 0, 2, FAR - 6000, FAR + 200_000, 0, 0, np.ones(2, np.uint8), False, begins, ends, found.room, *found.arrays
    )
    assert found.counts.sum() == 2 and set(found.begins.tolist()) >= set(begins.tolist())
    module = skeleton.build("counting", COUNTING, weighted=False, pull=False, gpu=False)
    state = np.zeros(251, np.int64), np.zeros(2, np.int64)
    marks = np.zeros(251, np.uint8)
    for kind, width in enumerate(skeleton.WIDTHS):
        module.push(
            256,
            kind,
            found.room,
            *found.arrays,
            width,
            128,
            begins,
            ends,
            far_targets,
            np.zeros(1, np.int32),
            state,
            state,
            (0,),
            marks,
        )
    assert np.array_equal(state[0], 2 * np.bincount(numbers, minlength=251))
    assert state[1].tolist() == [degree, degree]
    for first, last in zip(begins, ends, strict=True):
        far_targets[first:last] = 0


def test_on_a_gpu_indices_have_64_bits() -> None:
    """The types that numba-cuda infers for them, as it compiles the kernel without a GPU."""
    pytest.importorskip("numba_cuda", reason="types of GPU kernels need the packages of the test extra")
    if cuda_module.simulated():
        pytest.skip("the simulator infers no types")
    numba, compiler = importlib.import_module("numba"), importlib.import_module("numba.cuda.compiler")
    module = skeleton.build("counting", COUNTING, weighted=True, pull=False)
    number, numbers = np.int64(0), np.empty(1, np.int64)
    arguments = (
        number,
        number,
        np.empty(1, np.uint32),
        numbers,
        numbers,
        numbers,
        numbers,
        number,
        number,
        numbers,
        numbers,
        np.empty(1, np.uint32),
        np.empty(1, np.int32),
        (numbers, numbers),
        (numbers, numbers),
        (0,),
        np.empty(1, np.uint8),
    )
    types = tuple(numba.typeof(each) for each in arguments)
    found = compiler.compile_cuda(module.push.py_func, numba.types.void, types, cc=(8, 0))
    inferred = found.type_annotation.typemap
    for name in ("begin", "end", "e", "row", "u", "v", "lane", "groups", "thread", "threads"):
        mine = re.compile(rf"push_share_v\d+(_first_turn_v\d+)?_{name}(\.\d+)?")
        kinds = {str(kind) for variable, kind in inferred.items() if mine.fullmatch(variable)}
        assert kinds == {"int64"}, (name, kinds)
