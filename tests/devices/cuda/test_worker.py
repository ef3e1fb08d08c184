"""A run on a GPU: order of its work, memory on every path, and what is refused. See also conformance/test_cuda.py."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import gpus
from tests.conformance.test_cuda import NAMES
from tests.gpus import FailingCard, LazyCard, Near, StrictCard
from tests.programs.ways import columns, skewed

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda import disk_link, worker
from isthmus.devices.cuda import link as link_cuda
from isthmus.devices.cuda.link import CudaLink
from isthmus.errors import BudgetError, OptionError, ProgramError
from isthmus.kernels.compile import cuda_module
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.link import packers
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.executor.resident_partitions import ClockedTransfers

RECIPES = ("filter", "subway", "emogi", "emogi:hot", "unified", "grus", "scaph", "scaph:hbase", "hytgraph", "auto")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, sized: Any) -> Any:
    """Make a card the machine's only GPU, and lists longer than buffers."""
    sized(smallest_partition=4096, least_buffer=1024, few_edges=16, alone=64, piece=300, smallest_queue=3)

    def card(kind: type[LazyCard] = LazyCard, **options: Any) -> LazyCard:
        made = kind(**options)
        monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
        monkeypatch.setattr(cuda_device, "open_card", lambda number: made)
        return made

    return card


@pytest.fixture(scope="module")
def graph() -> Any:
    return ist.read(columns(skewed()), vertices=400)


HOW: dict[str, Any] = {"device": "cuda:0", "policy": "filter", "memory": "1%", "threads": 2}


def test_kernels_of_a_delivery_follow_its_copies(use: Any, graph: Any) -> None:
    card = use()
    result = ist.bfs(graph, 1, **HOW)
    assert "costs and modelled seconds are those of RTX 2080 Ti: this GPU's link was not measured" in result.trace.notes
    done = [(work.kind, work.name) for work in card.done]
    first = (
        done.index(("launch", "sort_range"))
        if ("launch", "sort_range") in done
        else done.index(("launch", "sort_rows"))
    )
    assert ("copy", "copy") in done[:first]
    assert [name for kind, name in done if kind == "launch"][:2] == ["fill", "sort_rows"]
    pushes = [k for k, (_, name) in enumerate(done) if name == "push"]
    assert done[pushes[0] : pushes[0] + 3] == [("launch", "push")] * 3  # one for each kind of row
    assert card.held == {}


def test_a_budget_above_the_memory_of_the_gpu_names_it(use: Any, graph: Any) -> None:
    use(bytes=cuda_device.SPARE + 2_000)
    result = ist.bfs(graph, 1, device="cuda:0", memory="50MB", threads=1)
    assert "the budget is more than the 2 kB of memory of lazy" in result.trace.notes
    with pytest.raises(BudgetError, match="cuda:0 has 2 kB free; use device='cpu', or end other programs on the GPU"):
        ist.bfs(graph, 1, device="cuda:0", threads=1)


def until(most: int) -> Any:
    """A watch that ends a run after some iterations: a frontier of rubbish may never be empty."""
    left = iter(range(most))

    def watch(iteration: Any) -> None:
        assert next(left, None) is not None, "the run does not end"

    return watch


def without_waits(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """Let kernels not wait for copies, or buffers not for kernels."""
    run = worker.CudaWorker._run

    def unfinished(self: Any, *given: Any) -> None:
        self._on.finish = lambda: None
        try:
            run(self, *given)
        finally:
            del self._on.finish

    if which == "copies":
        monkeypatch.setattr(CudaLink, "arrival", lambda self, channel=0: None)
    else:
        monkeypatch.setattr(worker.CudaWorker, "_run", unfinished)


@pytest.mark.parametrize(
    ("recipe", "which"), [("filter", "copies"), ("subway", "copies"), ("scaph", "copies"), ("filter", "kernels")]
)
def test_a_wait_that_is_missing_is_found(
    use: Any, graph: Any, recipe: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New memory has zeros here, which are vertices: what kernels find in rubbish they would use as indices."""
    monkeypatch.setattr(gpus, "RUBBISH", 0)
    use()
    expected = ist.sssp(graph, 1).filled()
    without_waits(monkeypatch, which)
    try:
        memory = "90%" if recipe == "scaph" else "1%"
        found = ist.sssp(graph, 1, **{**HOW, "policy": recipe, "memory": memory}, watch=until(500)).filled()
    except AssertionError as error:
        assert "no event orders them" in str(error) or "does not end" in str(error) or "freed under" in str(error)
    else:
        assert not np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("recipe", "far"), [("subway", "ram"), ("subway", "disk"), ("emogi", "disk"), ("scaph", "ram")]
)
def test_the_host_packs_while_lists_before_are_copied(
    use: Any, store: Any, sized: Any, recipe: str, far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never into memory that is being copied. Kernels are slow here, so that the reader is ahead of them."""
    card = use()
    sized(pinned=4096)
    under_way, module = [], link_cuda if far == "ram" else disk_link
    name, place = ("copy", 2) if far == "ram" else ("pack", 4)
    pack = getattr(module, name)

    def packing(*given: Any) -> Any:
        assert not card.uses(given[place]), "packed over a copy that is under way"
        under_way.append(any(work.kind == "copy" and work.writes[0].dtype == np.uint8 for work in card._waiting()))
        return pack(*given)

    monkeypatch.setattr(module, name, packing)
    run = worker.CudaWorker._run
    monkeypatch.setattr(worker.CudaWorker, "_run", lambda *given: time.sleep(0.01) or run(*given))
    how = {**HOW, "policy": recipe, "memory": "1%" if recipe != "scaph" else "60%"}
    assert np.array_equal(ist.sssp(store, 1, **how, far=far).filled(), ist.sssp(store, 1, device="cpu").filled())
    assert any(under_way)
    assert card.held == {}


def test_partitions_that_stay_are_copied_while_others_run(
    use: Any, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, sent, run_meanwhile = use(), [], []
    send, run = ClockedTransfers.send, worker.CudaWorker._run

    def sending(self: Any, unit: int) -> None:
        before = len(card.record_of)
        send(self, unit)
        sent.extend(card.record_of[before:])

    def running(self: Any, delivery: Any, *given: Any) -> None:
        run(self, delivery, *given)
        run_meanwhile.append(any(work is other for work in card._waiting() for other in sent))

    monkeypatch.setattr(ClockedTransfers, "send", sending)
    monkeypatch.setattr(worker.CudaWorker, "_run", running)
    found = ist.sssp(graph, 1, **{**HOW, "policy": "scaph", "memory": "90%"})
    assert np.array_equal(found.filled(), ist.sssp(graph, 1, device="cpu").filled())
    assert any(run_meanwhile)
    assert card.held == {}


def test_all_threads_of_a_session_pack(use: Any, graph: Any, sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    sized(few_rows=8)
    who, pack = set(), packers.pack
    monkeypatch.setattr(
        packers, "pack", lambda *given: who.add(threading.current_thread().name.split("_")[0]) or pack(*given)
    )
    found = ist.sssp(graph, 1, **{**HOW, "policy": "subway"})
    assert np.array_equal(found.filled(), ist.sssp(graph, 1, device="cpu").filled())
    assert "isthmus-pack" in who


@pytest.mark.parametrize("recipe", RECIPES)
def test_memory_is_freed_whichever_allocation_fails(use: Any, graph: Any, recipe: str) -> None:
    card = use()
    ist.sssp(graph, 1, **{**HOW, "policy": recipe})
    most, failed = card.taken, 0
    for count in range(0, most, max(1, most // 12)):
        card = use(fails_at=count)
        with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
            ist.sssp(graph, 1, **{**HOW, "policy": recipe})
        assert card.held == {}
        failed += 1
    assert failed >= 5


@pytest.mark.parametrize("recipe", RECIPES)
def test_memory_is_freed_whenever_the_card_fails(use: Any, graph: Any, recipe: str) -> None:
    how, waits = {**HOW, "policy": recipe, "memory": "40%"}, 0
    card = use(FailingCard, waits=1 << 30)
    ist.sssp(graph, 1, **how)
    most = (1 << 30) - card.waits
    for waits in range(0, most, max(1, most // 8)):
        card = use(FailingCard, waits=waits)
        with pytest.raises(OSError, match="the card has failed"):
            ist.sssp(graph, 1, **how)
        assert card.held == {}


@pytest.mark.parametrize(
    ("far", "link", "what"), [("disk", disk_link.CudaDiskLink, "_send"), ("ram", CudaLink, "_finish")]
)
def test_edges_that_did_not_arrive_are_loaded_again(
    use: Any, store: Any, far: str, link: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New memory has zeros here, which are vertices: a run that followed them would give a wrong answer."""
    monkeypatch.setattr(gpus, "RUBBISH", 0)
    card, do, fails = use(), getattr(link, what), iter([True])

    def failing(*given: Any) -> Any:
        if next(fails, False):
            raise KeyboardInterrupt
        return do(*given)

    expected = ist.bfs(store, 1, device="cpu").filled()
    with ist.session(store, device="cuda:0", far=far, threads=1) as session:
        monkeypatch.setattr(link, what, failing)
        with pytest.raises(KeyboardInterrupt):
            session.bfs(1)
        assert not card._waiting()
        result = session.bfs(1)
        assert np.array_equal(result.filled(), expected)
        # Resident.
        assert [result.summary()["load"]["bytes"] > 0, session.bfs(1).summary()["load"]["bytes"]] == [True, 0]
    assert card.held == {}


@pytest.mark.parametrize("what", ["launch", "scan", "stream", "record"])
def test_memory_that_work_takes_counts(use: Any, graph: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first launch of a kernel loads its code, prefix sums take memory of their own, and so do streams and
    events.
    """
    how = {**HOW, "policy": "hytgraph", "memory": "40%"}
    for before in (0, 1, 2):
        card, left = use(), iter(range(before))
        do = getattr(card, what)

        def full(*given: Any, do: Any = do, left: Any = left) -> Any:
            if next(left, None) is None:
                raise MemoryError("the card is full")
            return do(*given)

        monkeypatch.setattr(card, what, full)
        with pytest.raises(BudgetError, match="not enough GPU memory"):
            ist.pagerank(graph, **how)
        assert card.held == {}


@pytest.mark.parametrize("recipe", [*RECIPES, None])
@pytest.mark.parametrize("far", ["ram", "disk"])
def test_threads_begin_before_they_take_parts_of_near_memory(use: Any, store: Any, recipe: Any, far: str) -> None:
    """Also one that uses a session which another one has opened."""
    card, found = use(StrictCard), []
    if far == "disk" and recipe in ("unified", "grus"):
        pytest.skip("pages need edges in host memory")
    how = {**HOW, "policy": recipe or "filter", "memory": "40%" if recipe else None, "far": far}
    with ist.session(store, **how) as session:
        for _ in range(2):
            thread = threading.Thread(target=lambda: found.append(session.sssp(1).filled()))
            thread.start()
            thread.join()
    expected = ist.sssp(store, 1, device="cpu").filled()
    assert len(found) == 2 and all(np.array_equal(each, expected) for each in found)
    assert card.held == {}


@pytest.mark.parametrize("recipe", ["filter", "emogi", "subway", "hytgraph"])
def test_members_that_fetch_begin_too(use: Any, graph: Any, sized: Any, recipe: str) -> None:
    """A task of few edges is fetched by members of the team, if it has enough for more than one thread."""
    sized(few_edges=1 << 20, alone=16)
    expected = ist.weakly_connected_components(graph, device="cpu").filled()
    for _ in range(3):
        card = use(StrictCard)
        sized(few_edges=1 << 20, alone=16)
        found = ist.weakly_connected_components(graph, **{**HOW, "policy": recipe, "memory": "30%"}).filled()
        assert np.array_equal(found, expected) and card.held == {}


@pytest.mark.parametrize("what", ["stream", "near"])
def test_a_session_that_cannot_be_opened_ends_its_threads(
    use: Any, graph: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, before = use(), set(threading.enumerate())

    def full(*given: Any) -> Any:
        raise MemoryError("the card is full")

    monkeypatch.setattr(card, what, full)
    for _ in range(2):
        with (
            pytest.raises(BudgetError, match="not enough GPU memory"),
            ist.session(graph, device="cuda:0", threads=4) as session,
        ):
            session.bfs(1)
    assert {thread for thread in threading.enumerate() if thread.name.startswith("isthmus-team")} <= before


def test_a_thread_that_has_not_begun_is_found() -> None:
    caught: list[BaseException] = []

    def part(near: Any) -> None:
        try:
            near[:1]
        except AssertionError as error:
            caught.append(error)

    thread = threading.Thread(target=part, args=(np.zeros(3).view(Near),))
    thread.start()
    thread.join()
    assert "before it began" in str(caught[0])


@pytest.mark.parametrize("recipe", ["hytgraph", "emogi:hot"])
def test_caches_that_outlive_a_run_let_go_of_its_memory(
    use: Any, graph: Any, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use()
    movers: list[Any] = []

    class Mover(worker.ListMover):
        def __init__(self, rows: Any) -> None:
            super().__init__(rows)
            movers.append(weakref.ref(self))

    monkeypatch.setattr(worker, "ListMover", Mover)
    with ist.session(graph, **{**HOW, "policy": recipe, "memory": "40%"}) as session:
        for _ in range(2):
            session.pagerank()
            gc.collect()
            assert [mover for mover in movers if mover() is not None] == []
    assert len(movers) == 2


@pytest.mark.parametrize(("policy", "memory"), [("auto", "60%"), ("scaph", "200%")])
def test_partitions_that_stay_are_found_there(use: Any, policy: str, memory: str) -> None:
    """Core numbers follow edges of both sides, so recipes keep whole partitions."""
    directed = ist.read(columns(skewed()), vertices=400, directed=True)
    card = use()
    how = {**HOW, "policy": policy, "memory": memory, "threads": 1}
    result = ist.core_number(directed, **how)
    assert np.array_equal(result.filled(), ist.core_number(directed, device="cpu").filled())
    assert result.summary()["cache"]["hit_edges"] > 0
    assert "copy_lists" in [work.name for work in card.done], "they were copied on the GPU"
    assert (
        result.summary()["cache"]
        == ist.core_number(directed, **{**how, "device": "model:rtx2080ti"}).summary()["cache"]
    )
    assert card.held == {}


def test_memory_is_freed_after_an_error_in_the_middle(use: Any, graph: Any) -> None:
    card = use()

    def stop(iteration: Any) -> None:
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        ist.pagerank(graph, watch=stop, **HOW)
    assert card.held == {}


def test_edges_that_fit_stay_on_the_device_from_run_to_run(use: Any, graph: Any) -> None:
    card = use()
    with ist.session(graph, device="cuda:0") as session:
        session.bfs(1)
        before = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8)
        assert before == graph.edge_bytes
        card.record_of.clear()
        session.weakly_connected_components()
        assert not [
            work
            for work in card.record_of
            if work.kind == "copy" and work.writes[0].dtype == np.uint8 and work.bytes > 1000
        ]
        assert card.held
    assert card.held == {}


def positions(card: LazyCard, graph: Any) -> int:
    """How often the positions of all lists were uploaded."""
    return sum(work.kind == "copy" and work.bytes == 8 * (graph.vertices + 1) for work in card.record_of)


@pytest.mark.parametrize("policy", ["filter", "emogi", "hytgraph", "auto"])
@pytest.mark.parametrize("memory", ["40%", None])
def test_positions_of_lists_stay_on_the_device_from_run_to_run(use: Any, graph: Any, policy: str, memory: Any) -> None:
    card = use()
    with ist.session(graph, **{**HOW, "policy": policy, "memory": memory}) as session:
        for _ in range(3):
            session.bfs(1)
            session.sssp(1)
        assert positions(card, graph) == 1
    assert card.held == {}


def test_two_links_share_the_memory_of_an_array(use: Any, store: Any) -> None:
    """Runs with and without weights use the same targets."""
    card = use()
    with ist.session(store, device="cuda:0") as session:
        session.bfs(1)
        before = sum(array.nbytes for array in card.held.values())
        session.sssp(1)
        after = sum(array.nbytes for array in card.held.values())
        weights = store.arcs * store.snapshot.weight_bytes if store.weighted else 0
        assert after - before <= 2 * (weights + 2 * 4096)  # in host memory and near; no second copy of targets
    assert card.held == {}


@pytest.mark.parametrize("makes", ["mapped_room", "register"])
def test_far_targets_stay_from_runs_with_weights_to_those_without(
    use: Any, makes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = ist.generate(
        "rmat", tmp_path / "g.isthmus" if makes == "mapped_room" else None, scale=9, weights="1:9", seed=1
    )
    card, made = use(), []
    make = getattr(card, makes)
    monkeypatch.setattr(card, makes, lambda *given: made.append(given) or make(*given))
    with ist.session(edges, **HOW) as session:
        counts = []
        for run in (session.bfs, session.sssp, session.bfs, session.sssp):
            run(1)
            counts.append(len(made))
            assert len(card.far) == (1 if run.__name__ == "bfs" else 2), "what no run uses is let go"
        assert counts == [1, 2, 2, 3]  # targets once; weights for every run that follows one without
    assert card.held == {}


def test_edges_that_a_later_program_leaves_no_room_for_are_freed(use: Any) -> None:
    """Searches follow out-edges, PageRank in-edges; there is memory for one side."""
    directed = ist.read(columns(skewed()), vertices=400, directed=True)
    card = use()
    runs = (lambda **how: ist.bfs(directed, 1, **how), lambda **how: ist.pagerank(directed, **how))
    # Half of a side.
    most = max(run(device="cuda:0").summary()["memory"]["near_peak"] for run in runs) + 2 * directed.arcs
    with ist.session(directed, device="cuda:0", memory=most, policy="auto") as session:
        for run in (lambda: session.bfs(1), session.pagerank, lambda: session.bfs(1)):
            assert run().summary()["policy"] == "resident"
            sides = [
                array for array in card.held.values() if array.nbytes == 4 * directed.arcs and id(array) not in card.far
            ]
            assert len(sides) == 1
    assert card.held == {}


def test_networks_run_there_too(use: Any) -> None:
    card = use()
    network = ist.read(([0, 0, 1, 2, 3], [2, 3, 3, 4, 4], [0.5, 1.0, 2.0, 1.5, 0.25]), vertices=5)
    given = ([[1.0, 2.0], [0.5, -1.0]],)
    expected = ist.nn_inference(network, *given, layers=[2, 2, 1])
    for memory in ("1%", None):
        found = ist.nn_inference(network, *given, layers=[2, 2, 1], device="cuda:0", policy="filter", memory=memory)
        for name in expected.columns:
            assert np.allclose(found[name], expected[name])
    assert card.held == {}


@pytest.mark.parametrize(
    ("recipe", "advice", "prefetches"),
    [
        ("unified", "", False),
        ("unified:read-mostly", "read-mostly", False),
        ("unified:preferred-location", "preferred-location", False),
        ("unified:prefetch+read-mostly", "read-mostly", True),
        ("unified:prefetch", "", True),
        ("grus", "accessed-by", True),
    ],
)
def test_managed_edges_are_advised_and_prefetched_before_kernels_read_them(
    use: Any, graph: Any, recipe: str, advice: str, prefetches: bool
) -> None:
    card = use()
    expected = ist.sssp(graph, 1).filled()
    # it prefetches half of what is left.
    how = {**HOW, "policy": recipe, "memory": "90%" if recipe == "grus" else "30%", "threads": 1}
    result = ist.sssp(graph, 1, **how)
    assert np.array_equal(result.filled(), expected)
    assert card.advice == [(graph.arcs * 4, advice)]
    kinds = [work.kind for work in card.done]
    assert ("prefetch" in kinds) == prefetches
    assert "copy" not in kinds or "prefetch" not in kinds[kinds.index("launch") :]
    model = ist.sssp(graph, 1, **{**how, "device": "model:rtx2080ti"}).summary()
    assert result.summary()["transfer"].pop("row_bytes") > 0
    assert (result.summary()["transfer"], result.summary()["engines"]) == (model["transfer"], model["engines"])
    if recipe == "unified:prefetch":  # all pages, whatever fits
        assert sum(work.bytes for work in card.done if work.kind == "prefetch") == graph.edge_bytes
    assert "pages, faults and evictions are modelled: a GPU does not report them" in result.trace.notes
    copied = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8)
    assert copied == 0 and card.held == {}


def test_a_small_card_has_a_small_budget(use: Any, graph: Any) -> None:
    use(bytes=cuda_device.SPARE + 4000)
    with pytest.raises(BudgetError, match="needs at least"):
        ist.bfs(graph, 1, device="cuda:0")


class Counting(ist.Program):
    """Counts edges."""

    name = "counting"
    max_iter: int | None = 1
    order_free = False
    all_active = True
    state_bytes = 8

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Any) -> Any:
        return ist.Functions(one, count)

    def begin(self, facts: Any) -> Any:
        return ist.State({"values": np.zeros(facts.vertices)}, None)

    def result(self, state: Any, facts: Any) -> Any:
        return {"value": state.given("values")}


class Holding(Counting):
    """Holds a part of its state."""

    def begin(self, facts: Any) -> Any:
        state = super().begin(facts)
        self.parts = {"odd": [state["values"][1::2]]}
        return state


def one(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return 1.0


def count(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    atomic_add(state[0], v, x)
    return False


def test_a_program_that_holds_a_part_of_its_state_is_refused(use: Any, graph: Any) -> None:
    """A GPU has the state in memory of its own, so that what the program holds would not change."""
    card = use()
    with pytest.raises(ProgramError, match=r"counting: holds an array of its state in `parts`; ask for it with state"):
        ist.run(Holding(), graph, **HOW)
    assert card.held == {}
    assert ist.run(Counting(), graph, **HOW)["value"].sum() == graph.arcs
    assert ist.run(Holding(), graph, device="cpu")["value"].sum() == graph.arcs


class OwnLoops(Counting):
    """Has loops of its own, for this machine's processor, from the second iteration on."""

    max_iter = 3

    def after(self, state: Any, frontier: Any, facts: Any, iteration: int) -> bool:
        self.more = True
        return True

    def loops(self, state: Any) -> Any:
        return (lambda *given: 0,) * 2 if hasattr(self, "more") else None


@pytest.mark.parametrize("begun", [False, True])
def test_loops_of_a_program_s_own_are_refused(use: Any, graph: Any, begun: bool) -> None:
    card, program = use(), OwnLoops()
    if not begun:
        program.more = True
    with pytest.raises(
        OptionError, match=r"^counting does not run on a GPU: its own loops \(Program.loops\) are compiled for the proc"
    ):
        ist.run(program, graph, **HOW)
    assert card.held == {}


def test_no_algorithm_has_such_loops_there() -> None:
    """All of them run in the conformance suite, and networks above."""
    assert {name for name in ALGORITHMS.names() if name not in NAMES} == {"nn_inference"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.ingest(columns(skewed()), tmp_path_factory.mktemp("disk") / "g.isthmus", vertices=400) as store:
        yield store


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe not in ("unified", "grus")])
@pytest.mark.parametrize("memory", ["1%", None])
def test_a_store_larger_than_host_memory_is_read_from_disk(
    use: Any, store: Any, sized: Any, recipe: str, memory: Any
) -> None:
    card = use()
    sized(pinned=4096)
    how = {**HOW, "policy": recipe, "memory": memory}
    for name in ("sssp", "weakly_connected_components", "pagerank"):
        arguments = (1,) if name == "sssp" else ()
        expected = getattr(ist, name)(store, *arguments, device="cpu")
        result = getattr(ist, name)(store, *arguments, **how, far="disk")
        assert np.allclose(result.filled(), expected.filled(), atol=1e-5), name
        assert [
            note
            for note in result.trace.notes
            if note.startswith("edges are read from disk through 65.5 kB of page-locked memory")
        ]
        assert card.held == {}
    if recipe == "filter":
        model = ist.sssp(store, 1, **{**how, "device": "model:rtx2080ti"}).summary()
        moved = ist.sssp(store, 1, **how, far="disk").summary()["transfer"]
        assert moved.pop("row_bytes") > 0
        assert moved == model["transfer"]


def test_the_host_s_memory_decides_where_edges_come_from(use: Any, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    said = "of page-locked memory for each reader"
    for free, far, from_disk in (
        (1 << 40, "auto", False),
        (store.edge_bytes, "auto", True),
        (store.edge_bytes, "ram", False),
    ):
        monkeypatch.setattr(cuda_device, "available", lambda free=free: free)
        notes = ist.sssp(store, 1, **HOW, far=far).trace.notes
        assert any(said in note for note in notes) == from_disk
    with pytest.raises(OptionError, match=r"^policy: pages of managed memory need all edges in host memory"):
        ist.sssp(store, 1, **{**HOW, "policy": "unified"}, far="disk")


def test_edges_on_disk_need_a_store_and_no_modelled_device(use: Any, graph: Any, store: Any) -> None:
    use()
    with pytest.raises(
        OptionError, match=r"^far: expected a graph in a store, and no modelled device, for far='disk'; got <Graph"
    ):
        ist.bfs(graph, 1, **HOW, far="disk")
    with pytest.raises(OptionError, match=r"got device model:rtx2080ti, whose edges are in host memory"):
        ist.bfs(store, 1, device="model:rtx2080ti", far="disk")
    with pytest.raises(OptionError, match=r"^far: expected auto, ram or disk, got 'tape'"):
        ist.bfs(store, 1, far="tape")
    assert ist.bfs(store, 1, device="cpu", far="disk").summary()["device"] == "cpu"


@pytest.mark.parametrize("recipe", ["filter", "subway", "emogi"])
def test_memory_between_disk_and_gpu_is_freed_whichever_allocation_fails(use: Any, store: Any, recipe: str) -> None:
    card = use()
    how = {**HOW, "policy": recipe, "far": "disk"}
    ist.sssp(store, 1, **how)
    most = card.taken
    for count in range(0, most, max(1, most // 8)):
        card = use(fails_at=count)
        with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
            ist.sssp(store, 1, **how)
        assert card.held == {}


@pytest.mark.parametrize("recipe", ["filter", "emogi", "hytgraph"])
@pytest.mark.parametrize("memory", ["1%", None])
def test_values_and_parents_agree(use: Any, graph: Any, recipe: str, memory: Any) -> None:
    """Every reached vertex but the source has a parent, along an edge that makes its distance."""
    card = use()
    for search in (ist.bfs, ist.sssp):
        result = search(graph, 1, predecessors=True, **{**HOW, "policy": recipe, "memory": memory})
        expected = search(graph, 1, device="cpu").filled()
        distance, tree = result.filled(), result["predecessor"]
        assert np.array_equal(distance, expected)
        for v, u in enumerate(tree):
            if u is None:
                assert v == 1 or distance[v] == np.iinfo(np.int64).max
            else:
                assert graph.has_edge(int(u), v) and distance[u] < distance[v]
    assert card.held == {}
