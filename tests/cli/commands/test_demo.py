"""The demonstration, on a small graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.cli.commands.demo import demo


def test_all_answers_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(scale=10, folder=tmp_path)
    shown = capsys.readouterr().out
    assert "all sound" in shown
    assert "All answers agree. Edges on disk were" in shown
    assert [
        line.split()[-1] for line in shown.splitlines() if line.startswith(("bfs", "sssp", "components", "pagerank"))
    ] == ["yes"] * 4
    assert list(tmp_path.iterdir()) == []
