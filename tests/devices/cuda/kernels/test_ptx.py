"""Every kernel as PTX and cubin: `make ptx`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.devices.cuda.kernels import ptx
from isthmus.programs.catalogue import ALGORITHMS

ROOT = Path(__file__).parents[4]
SHARED = {"triangle_count": "local_clustering_coefficient"}  # programs with the same functions are compiled once


@pytest.mark.parametrize(
    ("registers", "capability", "share"),
    [
        (32, (8, 0), 1.0),
        (33, (8, 0), 0.75),
        (64, (8, 0), 0.5),
        (255, (8, 0), 0.125),
        (64, (7, 5), 1.0),
        (42, (12, 0), 5 / 6),
    ],
)
def test_occupancy_is_the_share_of_threads_that_fit(registers: int, capability: tuple[int, int], share: float) -> None:
    assert ptx.occupancy(registers, capability) == pytest.approx(share)


def test_a_log_without_figures_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^expected Used .* registers in what the linker says, got 'nothing'$"):
        ptx.numbers(r"Used (\d+) registers", "nothing")


@pytest.mark.timeout(600)  # half a minute alone
def test_all_kernels_compile_for_all_architectures_and_none_spills() -> None:
    for library in ("numba_cuda", "nvidia.cu13"):
        pytest.importorskip(library, reason="compiling for GPUs needs the packages of the test extra")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.ptx"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " sm_" in line]
    assert "no kernel spills registers" in done.stdout
    assert {line.split(" sm_")[1].split()[0] for line in lines} == {"75", "80", "90", "120"}
    compiled = {line.split(":")[0] for line in lines if ":" in line}
    assert {SHARED.get(name, name) for name in ALGORITHMS.names()} <= compiled
    maintained = {line.split(":")[0] for line in lines if ": hear" in line or ": send" in line}
    assert maintained == {"bfs", "sssp", "weakly_connected_components", "widest_path"}
