"""An NVIDIA GPU of this machine: the host's page-locked memory is far, the GPU's own is near.

Links, cache and clock count as those of a modelled GPU, with the costs that were measured on this one, or assumed ones.
What differs is here, in `link.py` and in `worker.py`: memory lies on the GPU, and kernels run there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from isthmus.devices.calibration import Calibration
from isthmus.devices.cpu import RunParts
from isthmus.devices.cuda.card import Card, NumbaCard, Shared
from isthmus.devices.cuda.columns import GpuColumns
from isthmus.devices.cuda.disk_link import CudaDiskLink
from isthmus.devices.cuda.frontier import CudaFrontier
from isthmus.devices.cuda.gpu_costs import CardCosts, costs_file, recall, remember
from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.devices.cuda.host_memory import FarMemory
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_cache import on_card
from isthmus.devices.cuda.measurement import TRIAL, CardSamples, Trial, measure_card
from isthmus.devices.cuda.residency import CudaResidency, card_bytes
from isthmus.devices.cuda.worker import CudaWorker, OnCard
from isthmus.devices.device import DeviceInfo
from isthmus.devices.model.device import ModelledGpu, ModelMemory
from isthmus.devices.model.figures import PREFIX, GpuFigures, find
from isthmus.devices.model.launches import Launches
from isthmus.devices.model.link import ModelLink
from isthmus.devices.worker import LiveValues, Worker
from isthmus.errors import NotOnGpu, OptionError, ProgramError
from isthmus.frontier import Frontier
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile import cuda_module
from isthmus.link.hints import Hint
from isthmus.link.link import Array, Link
from isthmus.link.open import in_files, open_link
from isthmus.link.profile.calibration import alone
from isthmus.link.profile.measurement import Say, ignore
from isthmus.link.whole_arrays import read_array
from isthmus.memory import DEFAULT_SHARE, available, format_size
from isthmus.messages import option
from isthmus.programs.program import Program
from isthmus.programs.state import State
from isthmus.progress import SILENT, Progress
from isthmus.threads import Team, uninterrupted

CUDA = "cuda"
SPARE = 128 << 20  # bytes of a GPU's memory that no budget uses: for rows that are sorted, and for the driver
ASSUMED = "rtx2080ti"  # whose costs policies use for a GPU that `isthmus calibrate` has not measured


class CudaGpu(ModelledGpu):
    """A GPU of this machine. `figures` has its costs, and its free memory when it was opened."""

    kind = CUDA
    reads_disks = True

    def __init__(self, figures: GpuFigures, name: str, card: Card) -> None:
        super().__init__(figures, name)
        self.card = card

    @classmethod
    def open(cls, argument: str | None) -> CudaGpu:
        name = CUDA if argument is None else f"{CUDA}:{argument}"
        gpu = gpu_named(name)
        card = open_card(gpu.number)
        return cls(figures_of(gpu, max(1, free_bytes(name, card) - SPARE)), name, card)

    @classmethod
    def listed(cls) -> list[DeviceInfo]:
        gpus, trouble = cuda_module.found()
        return [DeviceInfo(f"{CUDA}:{gpu.number}", in_words(gpu), gpu.trouble) for gpu in gpus] or [
            DeviceInfo(CUDA, "", trouble)
        ]

    def memory(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> CudaMemory:
        return CudaMemory(snapshot, team, verify, far, self.figures, self.card)

    def default_budget(self) -> int:
        return self.figures.near.bytes

    def more_memory(self, least: int) -> str:
        """A GPU cannot be given more memory than it has."""
        free = self.figures.near.bytes
        if least <= free:
            return super().more_memory(least)
        instead = f"use {option('device', 'cpu')}, or end other programs on the GPU"
        return f"{self.figures.gpu} has {format_size(free)} free; {instead}"

    def residency(self, *given: Any) -> CudaResidency:
        graph, *others = given
        return CudaResidency(graph, self.figures, *others, self.card)

    def residency_bytes(self, vertices: int, sides: int, hot: bool) -> int:
        return card_bytes(vertices, sides, hot)

    def shared_bytes(self, offsets: int) -> int:
        return offsets

    @classmethod
    def calibration(cls, name: str) -> Calibration:
        from isthmus.devices.cuda.calibration import GpuCalibration  # late: it measures by this file

        return GpuCalibration(name)


class CudaMemory(ModelMemory):
    """What a GPU holds for a session, and the host's memory that it reads."""

    holds_copies = True
    takes_pages = False

    def __init__(self, snapshot: Snapshot, team: Team, verify: bool, far: str, figures: GpuFigures, card: Card) -> None:
        super().__init__(snapshot, team, verify, far, figures)
        self._card, self._far_memory, self._card_lists = card, FarMemory(card), CardLists(card)
        self._used: set[tuple[str, bool]] = set()  # far arrays of the link that moves edges, with whether managed
        self._last: tuple[OnCard, State] | None = None  # of the last run: its state may still lie on the GPU

    def begin_thread(self) -> None:
        self._card.begin_thread()

    # Links and edges

    def _link(self, arrays: list[FarArray], page_bytes: int = 0, hint: Hint = Hint.NONE) -> ModelLink:
        managed = page_bytes > 0
        self._free_far({(array.name, managed) for array in arrays})
        if self._stays_on_disk(arrays, managed):
            if managed:
                instead = "give another recipe, or a smaller graph"
                raise NotOnGpu(f"policy: pages of managed memory need all edges in host memory; {instead}")
            return self._disk_link(arrays)
        if self.residency is not None:
            return super()._link(arrays, page_bytes, hint)
        try:
            return CudaLink(
                self._reachable(arrays, managed), self.figures, self._card, page_bytes, hint, self._team.size
            )
        except BaseException:
            self._free_far()
            raise

    def _disk_link(self, arrays: list[FarArray]) -> CudaDiskLink:
        disk = open_link(self.snapshot, arrays, "auto", self.verify)
        try:
            return CudaDiskLink(arrays, disk, self.figures, self._card)
        except BaseException:
            disk.close()
            raise

    def _stays_on_disk(self, arrays: list[FarArray], managed: bool) -> bool:
        """Whether the GPU gets these arrays from disk: on request, or if the host has no memory for those that it does
        not hold yet.
        """
        if not in_files(arrays) or self._far == "ram":
            return False
        missing = sum(array.bytes for array in arrays if not self._far_memory.holds(array.name, managed))
        return self._far == "disk" or missing > DEFAULT_SHARE * available()

    def _reachable(self, arrays: list[FarArray], managed: bool) -> list[Shared]:
        """Arrays in memory that the GPU's kernels reach; those that links hold already are shared with them."""
        far = self._far_memory
        missing = [array for array in arrays if not far.holds(array.name, managed)]
        if in_files(missing):
            disk = open_link(self.snapshot, missing, "auto", self.verify, may_measure=False)
            try:
                for index, array in enumerate(missing):
                    fill = partial(read_array, self._team, array, index, disk, directly=not managed)
                    far.read(array.name, array.bytes, fill, managed)
            finally:
                uninterrupted(disk.close)
        else:
            for array in missing:
                far.lock(array.name, np.ascontiguousarray(self.snapshot.whole(array, self.verify)), managed)
        return [far.of_name(array.name, managed) for array in arrays]

    def release(self, name: str) -> None:
        for names, link in self._near_links.items():
            if name in names:
                link.let_go(names.index(name))

    def keep_lists(self, lists: Iterable[Lists]) -> None:
        self._card_lists.keep_only(lists)

    def keep_far(self, names: Iterable[str], pages: bool) -> None:
        self._used = {(name, pages) for name in names}
        self._free_far()

    def _free_far(self, but: Collection[tuple[str, bool]] = ()) -> None:
        """Free the far arrays that no link uses, but for some that a link will use."""
        near = {(name, False) for names in self._near_links for name in names}
        self._far_memory.keep_only(near.union(self._used, but))

    # Parts of a run

    def frontier(self) -> Frontier:
        return CudaFrontier(self.snapshot.vertices, self._team.size)

    def cache_place(self, link: Link) -> Any:
        assert isinstance(link, CudaLink)
        return on_card(link)

    @contextmanager
    def running(self, parts: RunParts) -> Iterator[Worker]:
        """While inside, the state and the frontier lie in memory that host and GPU both use."""
        state, frontier, self._last = parts.state, parts.frontier, None
        assert isinstance(frontier, CudaFrontier)
        refuse_held(parts.program, state)
        own = state.arrays  # a stream goes on with them
        with OnCard(self._card, self._card_lists, self.residency) as on:
            state.place(on.reach)
            try:
                frontier.attach(on)
                launches = Launches(parts.program, state) if self._card.repeats else LiveValues(state)
                yield CudaWorker(on, parts, self._team, launches)
                on.finish()
                own = tuple(on.detach(array, there) for array, there in zip(own, state.arrays, strict=True))
            finally:
                parts.cache.detach()
                state.arrays = own
            self._last = on, state

    def result_columns(self, columns: dict[str, Array]) -> GpuColumns:
        last, self._last = self._last, None
        return GpuColumns(self._card, [] if last is None else last[0].unchanged(last[1]), columns)

    def close(self) -> None:
        with ExitStack() as last:
            last.callback(self._far_memory.close)
            last.callback(self._card_lists.close)
            self._used = set()
            super().close()


def refuse_held(program: Program, state: State) -> None:
    """Raise ProgramError if a program holds an array of its state: it would not see what kernels write.

    Arrays that it was made with are its inputs, and nothing writes into them.
    """
    inputs = list(arrays_in(program.given))
    written = [own for own in state.arrays if not any(np.may_share_memory(own, each) for each in inputs)]
    for name, value in (*vars(program).items(), *state.extra.items()):
        if any(np.may_share_memory(array, own) for array in arrays_in(value) for own in written):
            ask = "ask for it with state.arrays whenever it is needed: a GPU has the state in memory of its own"
            raise ProgramError(f"{program.name}: holds an array of its state in `{name}`; {ask}")


def arrays_in(value: Any) -> Iterator[Array]:
    """The arrays in a value, and in its lists, tuples and dictionaries."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(each)


# GPUs by name


@cache
def open_card(number: int) -> Card:
    return NumbaCard(number)


def gpu_named(text: str, instead: str | None = None) -> cuda_module.Found:
    """The GPU that `cuda:NUMBER` or `cuda` means; raises OptionError if it cannot be used.

    `instead`: what the user can do then.
    """
    if not re.fullmatch(r"cuda(:\d{1,4})?", text):
        raise OptionError(f"device: expected {CUDA}:NUMBER, such as {CUDA}:0, got {text!r}")
    number = int(text.partition(":")[2] or 0)
    gpus, trouble = cuda_module.found()
    if not trouble and number >= len(gpus):
        trouble = f"this machine has {len(gpus)} GPU{'s' if len(gpus) > 1 else ''}, numbered from 0"
    trouble = trouble or gpus[number].trouble
    if trouble:
        raise OptionError(f"device: {text}: {trouble}; {instead or elsewhere()}")
    return gpus[number]


def free_bytes(text: str, card: Card) -> int:
    """Free memory of a GPU; raises OptionError if the driver does not let this process use it."""
    try:
        return card.free_bytes()
    except Exception as error:  # of the driver: another process fills the GPU, or has it for itself
        raise OptionError(f"device: {text}: {cuda_module.reason(error)}; {elsewhere()}") from error


def figures_of(gpu: cuda_module.Found, near_bytes: int) -> GpuFigures:
    """A GPU's measured costs or, if there are none, assumed ones."""
    assumed, known, place = find(ASSUMED), recall(gpu.name, gpu.number), f"{CUDA}:{gpu.number}"
    if known is None:
        near = replace(assumed.near, bytes=near_bytes)
        return replace(assumed, name=gpu.name, gpu=place, costs_of=assumed.name, near=near)
    return replace(known.costs.device(assumed, near_bytes), gpu=place)


def elsewhere() -> str:
    return f"{option('device', 'cpu')} runs here, {option('device', f'{PREFIX}rtx2080ti')} models a GPU"


def in_words(gpu: cuda_module.Found) -> str:
    if gpu.capability == (0, 0):
        return gpu.name
    text = f"{gpu.name}, compute capability {gpu.capability[0]}.{gpu.capability[1]}"
    return text if gpu.trouble or recall(gpu.name, gpu.number) else f"{text}; not measured, so auto does not choose it"


# Measurement


def measurable_gpu(text: str) -> cuda_module.Found:
    """The GPU of that name; raises OptionError if it cannot be used, or has no link."""
    gpu = gpu_named(text, f"without {option('device')}, a disk is measured")
    if gpu.capability == (0, 0):
        raise OptionError(f"device: {text}: {gpu.name} has no link to measure; unset NUMBA_ENABLE_CUDASIM")
    return gpu


def survey(
    text: str, progress: Progress = SILENT, say: Say = ignore, trial: Trial = TRIAL
) -> tuple[CardSamples, CardCosts]:
    """Measure a GPU and remember its costs; `say` gets a note if they cannot be saved."""
    gpu = measurable_gpu(text)
    with alone(say):
        try:
            samples = measure_card(open_card(gpu.number), gpu.name, trial=trial, progress=progress)
        except MemoryError as error:
            less = "too little free memory to measure it; end other programs that use it"
            raise OptionError(f"device: {text}: {less}") from error
        except Exception as error:
            if not cuda_module.of_driver(error):
                raise
            raise OptionError(f"device: {text}: {cuda_module.reason(error)}; end other programs that use it") from error
        costs = samples.costs()
        if not remember(costs, gpu.number):
            say(f"not remembered: {costs_file()} cannot be written; set ISTHMUS_CACHE to a folder that can")
    return samples, costs
