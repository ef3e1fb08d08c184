"""Modelled devices: figures of a GPU, its host and their interconnect, each with its source.

Built-in devices are the files of `profiles/`; a user adds one by writing another. Figures come from published
micro-benchmarks and data sheets, and never change to fit the run times of a graph system, so the model's times are
predictions. `costs.py` has the formulas that use them, docs/model.md says how to add a device.

A file may begin with `base = "rtx2080ti"` and then give only what differs.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from isthmus.errors import OptionError
from isthmus.link.link import Profile

PREFIX = "model:"
Count = int  # a figure that may be 0
# Bytes of a page, bytes of a block of pages, cores of a host.
LEAST_PAGE, MOST_BYTES, MOST_CORES = 512, 1 << 30, 1 << 16
MOST_REQUEST = 2048  # bytes, so that the smallest buffer holds a list at any alignment
FASTER = 1.1  # a kernel may read host memory up to 10 % faster than the measured copy engine


@dataclass(frozen=True)
class Bus:
    """The interconnect: bytes per second, seconds, bytes."""

    bandwidth: float  # explicit copies to the device
    back_bandwidth: float  # explicit copies from the device
    transfer_seconds: float  # of the copy engine, before the first byte of a copy
    copy_seconds: float  # of a copy that the host waits for
    request_bytes: int  # largest request: a line
    sector_bytes: int  # smallest request
    in_flight: int  # requests under way at once
    direct: tuple[float, ...]  # bandwidth of a kernel that reads far memory by requests of 1, 2, ... sectors


@dataclass(frozen=True)
class Paging:
    """Managed memory: how faults become migrations."""

    page_bytes: int
    first_bytes: int  # a single fault brings this much
    block_bytes: int  # the most that one fault can bring, and what is evicted
    grow_share: float  # a region migrates whole if more than this share is near or wanted
    batch_faults: int  # faults handled together
    fault_seconds: float  # of a batch
    peak_share: float  # of the bulk bandwidth
    counted_requests: Count  # requests to a mapped block in far memory after which it migrates; 0: it never does


@dataclass(frozen=True)
class NearMemory:
    """The device's memory, and how fast its kernels use it."""

    bytes: int
    bandwidth: float
    push_share: float  # of that bandwidth, reached by a kernel that pushes along edges
    update_bytes: int  # of near memory accessed per edge, besides the edge
    launch_seconds: float


@dataclass(frozen=True)
class Host:
    """The processor that packs lists."""

    cores: int
    pack_bandwidth: float  # bytes per second of adjacent lists, per core while all cores pack
    fetch_bytes: int  # smallest fetch from host memory


@dataclass(frozen=True)
class GpuFigures:
    """A GPU in its host."""

    name: str
    link: Bus
    managed: Paging
    near: NearMemory
    host: Host
    sources: dict[str, str]  # of every figure, by "section.key"
    measured: bool = False  # on a GPU of this machine (`devices/cuda/gpu_costs.py`)
    gpu: str = ""  # the GPU of this machine that it is, such as cuda:0
    costs_of: str = ""  # the modelled device whose figures stand in for a GPU that was not measured

    def profile(self) -> Profile:
        """The costs that policies use: bulk bytes, full requests, and packing unaligned lists as long as a request."""
        line, host = self.link.request_bytes, self.host
        rate = self.link.direct[-1] / line
        packing = host.cores * host.pack_bandwidth * 2 * line / (2 * line + host.fetch_bytes)
        name = self.name if self.measured else f"{PREFIX}{self.costs_of or self.name}"
        return Profile(name, self.link.bandwidth, rate, line, self.link.in_flight, self.measured, (), packing)


SECTIONS: dict[str, type[Any]] = {"link": Bus, "managed": Paging, "near": NearMemory, "host": Host}


def builtin() -> list[str]:
    """Names of the devices that come with Isthmus."""
    return sorted(file.name.removesuffix(".toml") for file in folder().iterdir() if file.name.endswith(".toml"))


def find(text: str) -> GpuFigures:
    """The device that `model:NAME` or `model:./mine.toml` means; the prefix may be left out."""
    name = text.removeprefix(PREFIX)
    if name in builtin():
        return parse(read(folder() / f"{name}.toml"), f"{name}.toml")
    if "/" in name or name.endswith(".toml"):
        return parse(read(Path(name)), name)
    raise OptionError(
        f"device: {PREFIX}{name}: expected one of {', '.join(builtin())}, or a file such as {PREFIX}./mine.toml"
    )


def folder() -> Any:
    return files("isthmus.devices.model") / "profiles"


def read(path: Any) -> str:
    try:
        return str(path.read_text("utf-8"))
    except OSError as error:
        raise OptionError(f"device: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"device: {path}: not a text file in UTF-8") from error


def parse(text: str, file: str) -> GpuFigures:
    """A device from the text of its file; `file` is for messages."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{file}: not TOML: {error}") from error
    base = tables.pop("base", None)
    if base is not None and base not in builtin():
        raise OptionError(f"{file}: base: expected one of {', '.join(builtin())}, got {base!r}")
    inherited = tomllib.loads(read(folder() / f"{base}.toml")) if base else {}
    name = tables.pop("name", None)
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        raise OptionError(f'{file}: name: expected name = "...", {got(name)}')
    for key in tables.keys() - SECTIONS.keys():
        raise OptionError(f"{file}: {key}: unknown; expected name, base and the tables {', '.join(SECTIONS)}")
    sources: dict[str, str] = {}
    parts = {
        key: section(file, key, kind, tables.get(key, {}), inherited.get(key, {}), sources)
        for key, kind in SECTIONS.items()
    }
    return checked(GpuFigures(name=name, sources=sources, **parts), file)


def section(
    file: str, table: str, kind: type[Any], given: Any, inherited: dict[str, Any], sources: dict[str, str]
) -> Any:
    """One table of figures as its dataclass; adds their sources to `sources`."""
    if not isinstance(given, dict):
        raise OptionError(f"{file}: {table}: expected a table of figures, {got(given)}")
    known = {field.name: str(field.type) for field in fields(kind)}
    for key in given.keys() - known.keys():
        raise OptionError(f"{file}: [{table}] {key}: unknown; expected {', '.join(known)}")
    figures = {**inherited, **given}
    values = {}
    for key, type_ in known.items():
        where = f"{file}: [{table}] {key}"
        if key not in figures:
            raise OptionError(f'{where} is missing; give {key} = {{ value = ..., source = "..." }}')
        values[key], sources[f"{table}.{key}"] = figure(where, figures[key], type_)
    return kind(**values)


def figure(where: str, entry: Any, kind: str) -> tuple[Any, str]:
    """The value and the source of one figure."""
    if not isinstance(entry, dict) or entry.keys() != {"value", "source"}:
        raise OptionError(f'{where}: expected {{ value = ..., source = "..." }}, {got(entry)}')
    value, source = entry["value"], entry["source"]
    if not isinstance(source, str) or not source.strip():
        raise OptionError(f"{where}: source: expected where the figure was published, {got(source)}")
    if kind == "int":
        good, expected = whole(value), "a whole number from 1 to 1e18"
    elif kind == "Count":
        good, expected = whole(value) or (value == 0 and type(value) is int), "a whole number from 0 to 1e18"
    elif kind == "float":
        good, expected = positive(value), "a number from 1e-18 to 1e18"
    else:
        good, expected = isinstance(value, list) and all(map(positive, value)), "a list of numbers from 1e-18 to 1e18"
        value = tuple(map(float, value)) if good else value
    if not good:
        raise OptionError(f"{where}: value: expected {expected}, {got(value)}")
    return (float(value) if kind == "float" else value), source


def checked(device: GpuFigures, file: str) -> GpuFigures:
    """The device, if its figures are consistent."""
    link, managed, near = device.link, device.managed, device.near
    for where, share in (
        ("[managed] grow_share", managed.grow_share),
        ("[managed] peak_share", managed.peak_share),
        ("[near] push_share", near.push_share),
    ):
        if share > 1:
            raise OptionError(f"{file}: {where}: expected a share of at most 1, got {share:g}")
    sizes = (link.sector_bytes, link.request_bytes, managed.page_bytes, managed.first_bytes, managed.block_bytes)
    if list(sizes) != sorted(sizes) or any(size & (size - 1) for size in sizes):
        raise OptionError(
            f"{file}: [link] sector_bytes <= request_bytes <= [managed] page_bytes <= first_bytes <= block_bytes: "
            f"expected powers of two in this order, got {', '.join(map(str, sizes))}"
        )
    for where, count, most in (
        ("[link] request_bytes", link.request_bytes, MOST_REQUEST),
        ("[managed] block_bytes", managed.block_bytes, MOST_BYTES),
        ("[host] cores", device.host.cores, MOST_CORES),
    ):
        if count > most:
            raise OptionError(f"{file}: {where}: expected at most {most:,}, got {count:,}")
    if managed.page_bytes < LEAST_PAGE:
        raise OptionError(f"{file}: [managed] page_bytes: expected at least {LEAST_PAGE}, got {managed.page_bytes}")
    steps = link.request_bytes // link.sector_bytes
    if len(link.direct) != steps:
        raise OptionError(
            f"{file}: [link] direct: expected {steps} bandwidths, one for every number of sectors, got "
            f"{len(link.direct)}"
        )
    if list(link.direct) != sorted(link.direct) or link.direct[-1] > FASTER * link.bandwidth:
        top = f"{link.bandwidth:g} (the bulk bandwidth)"
        raise OptionError(
            f"{file}: [link] direct: expected ascending bandwidths up to about {top}, got {list(link.direct)}"
        )
    return device


def positive(value: Any) -> bool:
    """Whether a value is a number in the range of real devices; products of such numbers with bytes stay finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 1e-18 <= value <= 1e18


def whole(value: Any) -> bool:
    return isinstance(value, int) and positive(value)


def got(value: Any) -> str:
    return "got nothing" if value is None else f"got {value!r}"
