"""Files that end too early, and flipped bits, one after another: every byte and every bit of the files that a reader
begins with.

    python -m tests.faults.bits
    python -m tests.faults.bits --step 50       # every 50th

| file | cut at every byte | flipped |
|---|---|---|
| the last file of a log | opens with the batches that are whole | bits of headers: opens with all, or is refused |
| an older file of a log | opens with all batches, or is refused | |
| `stream.json` | refused | every bit: refused |
| the manifest of a stream's newest checkpoint | opens with all batches | every bit: opens with all batches |
| the manifest of a store | refused | every bit: refused |
| a section of a store | refused | |
| the manifest of a run's checkpoint | refused | every bit: refused |

Whatever opens must have the graph of its batch, and answers as from scratch.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.log_streams import BATCHES, Scenario, Streams, edges

import isthmus as ist
from isthmus.stream.log import frames, segments

# What is wrong with a folder in which a file has this content; None: nothing.
Judge = Callable[[Path, bytes], str | None]


@dataclass
class Target:
    """A file in a folder, the bits to flip, and what may come of it."""

    name: str
    folder: Path
    file: Path
    bits: range | list[int]
    cut: Judge
    flipped: Judge

    def points(self) -> Iterator[tuple[str, bytes, Judge]]:
        whole = (self.folder / self.file).read_bytes()
        for size in range(len(whole)):
            yield f"cut at byte {size}", whole[:size], self.cut
        for bit in self.bits:
            yield (
                f"bit {bit}",
                whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :],
                self.flipped,
            )


class RefusedError(Exception):
    """A folder was refused, with one line."""


def clearly(use: Callable[[], Any]) -> Any:
    """What `use` returns; RefusedError if it raises an error for people."""
    try:
        return use()
    except ist.StoreError as error:
        if "\n" in str(error):
            raise
        raise RefusedError from error


class Files:
    """Sound folders, and what must come of them when they are not."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.streams = folder, Streams(folder)

    def targets(self) -> Iterator[Target]:
        yield from self.of_streams()
        yield from self.of_stores()
        yield self.of_a_run()

    def of_streams(self) -> Iterator[Target]:
        log = self.begun(Scenario("a log", BATCHES))
        last, judges = segments.found(log)[-1][1], (self.whole_batches, self.all_or_refused)
        yield Target("the last file of a log", log, last.relative_to(log), header_bits(last, self.seed(log)), *judges)
        yield Target(
            "stream.json", log, Path("stream.json"), every_bit(log / "stream.json"), self.refused, self.refused
        )
        older = self.begun(Scenario("two files", BATCHES, segment=600))
        first = segments.found(older)[0][1]
        assert len(segments.found(older)) > 1
        yield Target(
            "an older file of a log", older, first.relative_to(older), [], self.all_or_refused, self.all_or_refused
        )
        kept = self.begun(Scenario("checkpoints", BATCHES, log_size=500))
        manifest = Path(sorted(path.name for path in kept.glob("checkpoint-*"))[-1]) / "manifest.json"
        yield Target(
            "the manifest of the newest checkpoint", kept, manifest, every_bit(kept / manifest), self.all, self.all
        )

    def begun(self, scenario: Scenario) -> Path:
        return self.streams.template(scenario)

    def seed(self, folder: Path) -> int:
        from isthmus.stream.log.recovery import manifest_of

        return int(manifest_of(folder)["seed"], 16)

    def opened(self, folder: Path) -> int:
        """The batch that a stream opens with; its graph and its answers must be those after that batch."""
        with clearly(lambda: ist.stream(log=folder, threads=1)) as live:
            assert edges(live) == self.streams.states[live.number], f"another graph than that of batch {live.number}"
            assert not live.check(), "wrong answers"
            return int(live.number)

    def whole_batches(self, folder: Path, data: bytes) -> str | None:
        expected = sum(frame.header.kind == frames.BATCH for frame in frames_of(data, self.seed(folder)))
        return (
            None
            if (found := self.opened(folder)) == expected
            else f"opened with batch {found}, and {expected} are whole"
        )

    def all(self, folder: Path, data: bytes) -> str | None:
        return None if (found := self.opened(folder)) == BATCHES else f"opened with batch {found} of {BATCHES}"

    def all_or_refused(self, folder: Path, data: bytes) -> str | None:
        try:
            return self.all(folder, data)
        except RefusedError:
            return None

    def refused(self, folder: Path, data: bytes) -> str | None:
        try:
            return f"opened with batch {self.opened(folder)}"
        except RefusedError:
            return None

    def of_stores(self) -> Iterator[Target]:
        store = self.folder / "g.isthmus"
        ist.generate("rmat", store, scale=5, edge_factor=2, weights="1:9", seed=3, threads=1).close()
        yield Target(
            "the manifest of a store",
            store,
            Path("manifest.json"),
            every_bit(store / "manifest.json"),
            self.unread,
            self.unread,
        )
        for name in ("out.offsets", "out.targets", "out.targets.xxh3"):
            yield Target(f"{name} of a store", store, Path(name), [], self.unread, self.unread)

    def unread(self, folder: Path, data: bytes) -> str | None:
        def use() -> None:
            with ist.open(folder) as graph:
                ist.sssp(graph, 0, threads=1)

        try:
            clearly(use)
        except RefusedError:
            return None
        return "it was read"

    def of_a_run(self) -> Target:
        """A run that was stopped in its fourth iteration."""
        self.graph = ist.generate("path", self.folder / "path.isthmus", vertices=40, threads=1)
        kept, iterations = self.folder / "kept", list[Any]()

        def watch(iteration: Any) -> None:
            iterations.append(iteration)
            if len(iterations) == 4:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            self.run(kept, watch)
        [name] = [path.name for path in kept.iterdir()]
        manifest = Path(name) / "manifest.json"
        return Target(
            "the manifest of a run's checkpoint",
            kept,
            manifest,
            every_bit(kept / manifest),
            self.unresumed,
            self.unresumed,
        )

    def run(self, kept: Path, watch: Any = None) -> None:
        ist.bfs(
            self.graph, 0, checkpoint=kept, checkpoint_every=0, memory="10%", policy="filter", threads=1, watch=watch
        )

    def unresumed(self, folder: Path, data: bytes) -> str | None:
        try:
            clearly(lambda: self.run(folder))
        except RefusedError:
            return None
        return "it was used"


def every_bit(file: Path) -> range:
    return range(8 * file.stat().st_size)


def frames_of(data: bytes, seed: int) -> list[frames.Frame]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return list(frames.frames(file.fileno(), seed, "", len(data)))


def header_bits(file: Path, seed: int) -> list[int]:
    return [8 * frame.at + bit for frame in frames_of(file.read_bytes(), seed) for bit in range(8 * frames.HEADER)]


def examined(target: Target, data: bytes, judge: Judge, folder: Path) -> str | None:
    """What is wrong when the file has this content."""
    shutil.copytree(target.folder, folder)
    try:
        (folder / target.file).write_bytes(data)
        return judge(folder, data)
    except RefusedError as error:
        return f"it was refused: {error.__cause__}"
    except Exception:
        return f"a traceback: {traceback.format_exc()}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def campaign(folder: Path, step: int = 1) -> tuple[collections.Counter[str], list[str]]:
    """How many points of each file were tried, and all problems."""
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    tried, found = collections.Counter[str](), list[str]()
    for target in Files(folder).targets():
        for number, (what, data, judge) in enumerate(target.points()):
            if number % step:
                continue
            tried[target.name] += 1
            problem = examined(target, data, judge, folder / "point")
            if problem is not None:
                found.append(f"{target.name}, {what}: {problem}")
                print(found[-1], flush=True)
        print(f"{target.name}: {tried[target.name]} points, {len(found)} problems so far", file=sys.stderr, flush=True)
    return tried, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="try every so many of the points")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tried, found = campaign(Path(folder), given.step)
    print(
        f"{tried.total()} points, {len(found)} problems; "
        + ", ".join(f"{name} {count}" for name, count in tried.items())
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
