"""A slice of the campaign of files that end too early and flipped bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import bits


@pytest.mark.timeout(300)  # it may have to compile
@pytest.mark.filterwarnings("ignore::isthmus.IsthmusWarning")
def test_no_cut_and_no_flipped_bit_is_overlooked(tmp_path: Path) -> None:
    tried, found = bits.campaign(tmp_path, step=97)
    assert not found
    assert len(tried) == 9 and tried.total() > 300
