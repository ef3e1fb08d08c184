"""`isthmus stream`, as a person or a script meets it.

Tests `cli/commands/stream.py`, `cli/commands/stream_follow.py`, `cli/follower.py`, `cli/program_texts.py` and
`cli/commands/stream_workload.py`.
"""

from __future__ import annotations

import io
import json
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.in_process import caller
from tests.cli.outcome import PATIENT

import isthmus as ist
from isthmus.stream.live import Live

COMMAND = [*PATIENT, "stream"]
CHANGES = "op,source,target,weight,time\ninsert,0,700,3,10\ninsert,700,701,1,11\ndelete,0,700,,12\n"
ONE = '{"op":"insert","source":1,"target":2}\n'


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    ist.generate("rmat", folder / "g.isthmus", scale=9, weights="1:20").close()
    ist.generate("path", folder / "path.isthmus", vertices=6).close()
    (folder / "u.csv").write_text(CHANGES)
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stores: Path) -> Any:
    monkeypatch.chdir(stores)
    return caller(capsys, monkeypatch, "stream")


def test_help(call: Any) -> None:
    for arguments in ([], ["--help"]):
        text = " ".join(call(*arguments).out.split())
        assert "Usage: isthmus stream [OPTIONS]" in text and "--program" in text and "make-workload" in text
    assert "--ratio" in call("make-workload", "--help").out


def test_make_a_workload_and_follow_it(call: Any, tmp_path: Path) -> None:
    made = call(
        "make-workload", "g.isthmus", "--batches", 3, "--size", 100, "--seed", 1, "-o", tmp_path / "w.parquet", "--json"
    )
    assert made.code == 0 and made.json["changes"] == 300
    programs = ["--program", "sssp:source=0", "--program", "pagerank:tol=1e-4,name=ranks", "--program", "wcc"]
    outputs = ["--changes", tmp_path / "changes", "-o", tmp_path / "now.isthmus"]
    done = call(
        "g.isthmus",
        *programs,
        "--updates",
        tmp_path / "w.parquet",
        "--check",
        "--strict",
        *outputs,
        "--threads",
        2,
        "--json",
    )
    assert done.code == 0, done.err
    facts = done.json
    assert [each["batch"] for each in facts["batches"]] == [1, 2, 3] and [
        each["changes"] for each in facts["batches"]
    ] == [100] * 3
    assert all(each["check"] == {} and each["inserted"] == each["deleted"] == 50 for each in facts["batches"])
    assert (
        set(facts["batches"][0]["programs"])
        == {"sssp", "ranks", "weakly_connected_components"}
        == set(facts["programs"])
    )
    assert set(facts["batches"][0]["programs"]["sssp"]) >= {"affected", "edges_read"}
    assert facts["programs"]["ranks"]["options"] == {"tol": 1e-4} and facts["programs"]["ranks"]["batch"] == 3
    assert facts["check"] == {"ok": True, "batches": 3} and facts["failed"] is None
    assert (
        facts["repeat"]["command"].startswith("isthmus stream g.isthmus --program")
        and facts["repeat"]["graph"]["checksum"]
    )
    assert set(facts["seconds"]) == {
        "open",
        "read",
        "update",
        "correction",
        "computation",
        "publication",
        "log",
        "total",
    }
    names = sorted(path.name for path in (tmp_path / "changes").iterdir())
    assert len(names) == 9 and names[0] == "batch-000001-ranks.parquet"
    with ist.open("g.isthmus") as before, ist.open(tmp_path / "now.isthmus") as now:
        assert before.edges == now.edges == facts["graph"]["edges"] and ist.verify(now.path).ok
        old, new = (ist.sssp(graph, 0).filled() for graph in (before, now))
    changed = [
        pq.read_table(tmp_path / "changes" / name).column("vertex").to_pylist() for name in names if "sssp" in name
    ]
    assert set((old != new).nonzero()[0].tolist()) <= {vertex for each in changed for vertex in each}


def test_lines_for_people(call: Any) -> None:
    done = call("g.isthmus", "--program", "bfs:source=0", "--updates", "u.csv", "--batch", 2, "--check")
    lines = done.out.splitlines()
    assert done.code == 0 and lines[0].startswith("batch 1: 2 changes in ") and "2/s arrive" in lines[0]
    assert lines[1].startswith("batch 2: 1 change in ")
    assert all(
        word in lines[0] for word in ("update", "correction", "computation", "affected", "edges read", "changes/s")
    )
    assert lines[2].startswith("stream on ")
    assert {"batches", "graph", "time", "rate", "bfs", "checked", "memory"} == {line.split()[0] for line in lines[3:]}
    assert "note: the graph has no weights" in call("path.isthmus", "--program", "sssp", "--updates", "u.csv").err


def test_windows(call: Any) -> None:
    done = call("g.isthmus", "--updates", "u.csv", "--window", "1500ms", "--json")
    assert [each["changes"] for each in done.json["batches"]] == [2, 1]


def test_changes_as_csv(call: Any, tmp_path: Path) -> None:
    changes = ["--changes", tmp_path / "c", "--changes-format", "csv"]
    assert call("path.isthmus", "--program", "bfs:source=0,name=from 0", "--updates", "u.csv", *changes).code == 0
    assert (tmp_path / "c" / "batch-000001-from 0.csv").read_text().splitlines()[0] == '"vertex","old","new"'
    again = call("path.isthmus", "--program", "bfs:source=0", "--updates", "u.csv", *changes)
    assert (
        again.code == 4
        and "has changes of another stream, such as batch-000001-from 0.csv; --overwrite replaces them" in again.err
    )
    assert call("path.isthmus", "--program", "bfs:source=0", "--updates", "u.csv", *changes, "--overwrite").code == 0
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["batch-000001-bfs.csv"]


BAD = [
    (["--program", "sssp:sorce=1"], 2, "--program sssp:sorce=1: sssp has no option 'sorce'; did you mean source?"),
    (["--program", "ssp"], 2, "--program ssp: no algorithm 'ssp'; did you mean sssp?"),
    (
        ["--program", "label_propagation"],
        2,
        "label_propagation cannot be kept current: its labels depend on every round before",
    ),
    (["--program", "pagerank:tol=much"], 2, "--program pagerank:tol=much: tol: expected a number, got 'much'"),
    (["--program", "bfs:source=0,depth_limit=-1"], 2, "depth_limit: expected at least 0, got -1"),
    (["--program", "pagerank:weight=perhaps"], 2, "weight: expected true or false, got 'perhaps'"),
    (["--program", "bfs:source=99999"], 6, "no vertex 99999 in the graph"),
    (["--program", "bfs:source=x"], 6, "no vertex 'x' in the graph; its ids are integers"),
    (
        ["--program", "bfs:source=0", "--program", "bfs:source=1"],
        2,
        "two programs are called bfs; give one of them a name",
    ),
    (["--program", "bfs:source=0,source=1"], 2, "source: expected once, got it 2 times"),
    (["--window", "soon"], 2, "--window: expected a time such as 1s or 500ms, got 'soon'"),
    (["--batch", "0"], 2, "--batch"),
    (["--format", "xml"], 2, "format: expected csv, jsonl, parquet or arrow, got 'xml'"),
    (["-o", "now.store"], 2, "now.store: expected a name that ends in .isthmus"),
    (["-o", "path.isthmus"], 4, "path.isthmus: exists already; --overwrite replaces it"),
    (["-o", "nowhere/now.isthmus"], 2, "nowhere: no such folder"),
    (["--changes", "u.csv"], 4, "u.csv: cannot write changes here"),
    (["--changes-format", "xml"], 2, "--changes-format: expected parquet or csv, got 'xml'"),
    (["--memory", "1kB"], 5, "got 1 kB. Give --memory "),
    (["--colour"], 2, "No such option: --colour"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=range(len(BAD)))
def test_mistakes(call: Any, arguments: list[str], code: int, message: str) -> None:
    done = call("g.isthmus", "--updates", "u.csv", *arguments)
    assert (done.code, done.out) == (code, "") and message in done.err and done.err.count("\n") <= 2


def test_other_mistakes(call: Any) -> None:
    assert "none.isthmus: no such store" in call("none.isthmus", "--updates", "u.csv").err
    assert "none.csv: no such file" in call("g.isthmus", "--updates", "none.csv").err
    assert "--updates" in call("g.isthmus").err


def test_a_bad_batch_ends_the_stream_after_the_good_ones(call: Any, stores: Path, tmp_path: Path) -> None:
    (stores / "bad.csv").write_text(CHANGES + "insert,1,x,1,13\n")
    saved = ["-o", tmp_path / "now.isthmus"]
    done = call("g.isthmus", "--program", "bfs:source=0", "--updates", "bad.csv", "--batch", 3, "--json", *saved)
    assert done.code == 3
    assert (
        "error: bad.csv:5: column 'target': expected an integer, as the graph's ids are, got 'x' (1 batch "
        "applied before)" in done.err
    )
    assert (
        len(done.json["batches"]) == 1
        and done.json["failed"].startswith("bad.csv:5")
        and not (tmp_path / "now.isthmus").exists()
    )
    first = call("g.isthmus", "--updates", "bad.csv")
    assert (first.code, first.out) == (3, "")


def test_an_answer_that_differs_is_found(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Live, "check", lambda self: {"bfs": "from scratch, distance of vertex 7 is 1 against 2 of the stream"}
    )
    done = call("g.isthmus", "--program", "bfs:source=0", "--updates", "u.csv", "--check", "--json")
    assert (
        done.code == 1
        and "error: batch 1: bfs is not what a run from scratch gives: from scratch, distance of vertex 7" in done.err
    )
    assert done.json["check"] == {"ok": False, "batches": 1} and done.json["batches"][0]["check"]


def test_check_compares_with_a_run_from_scratch() -> None:
    with ist.stream(ist.generate("path", vertices=6), [ist.BFS(source=0), ist.PageRank(tol=1e-6)]) as live:
        live.apply(inserts=[(0, 3)])
        assert live.check() == {}
        live.batches.programs["bfs"].published()[0][4] = 9
        live.batches.programs["pagerank"].published()[0][2] += 0.01
        live.batches.publications["bfs"].current._result = live.batches.publications["pagerank"].current._result = None
        found = live.check()
        assert found["bfs"] == "from scratch, distance of vertex 4 is 2 against 9 of the stream" and "pagerank" in found


def test_standard_input(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, code in ((ONE, 0), (ONE[:-1], 0), ("op,source,target\ninsert,1,2\n", 0), ("", 0), (ONE + ONE[:20], 3)):
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        with os.fdopen(reader) as file:
            monkeypatch.setattr(sys, "stdin", file)
            done = call("path.isthmus", "--program", "bfs:source=1", "--updates", "-", "--json")
        assert done.code == code, done.err
        assert (
            [each["changes"] for each in done.json["batches"]] == ([1] if text and not code else [])
            if not code
            else True
        )
    assert "standard input:2: expected a JSON object" in done.err
    assert isinstance(sys.stdin, io.TextIOBase)


def started(*arguments: str, **how: Any) -> subprocess.Popen[bytes]:
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen([*COMMAND, *arguments], **how)


def test_a_pipe_that_stays_open_and_signals(stores: Path, tmp_path: Path) -> None:
    """Batches are reported while the pipe is open; a signal ends the command, and what was written stays."""
    store = str(stores / "path.isthmus")
    arguments = [
        store,
        "--program",
        "bfs:source=0",
        "--updates",
        "-",
        "--window",
        "50ms",
        "--changes",
        str(tmp_path / "c"),
    ]
    for number in (signal.SIGINT, signal.SIGTERM):
        with started(*arguments, "--overwrite") as process:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            for batch in (1, 2):
                process.stdin.write(ONE.encode())
                process.stdin.flush()
                assert process.stdout.readline().startswith(b"batch %d: 1 change in " % batch)
            process.send_signal(number)
            assert process.wait(60) == 128 + number
            err = process.stderr.read().decode()
            process.stdin.close()
        kept = (
            f"error: interrupted; 2 batches applied in memory, their changes are in {tmp_path / 'c'}; no store was "
            f"changed\n"
        )
        assert err.endswith(kept if number == signal.SIGINT else "")
        assert len(list((tmp_path / "c").iterdir())) == 2
    assert ist.verify(store).ok


def test_a_log(call: Any, stores: Path, tmp_path: Path) -> None:
    """Started again, the command goes on; what it wrote is there, and another store is refused."""
    arguments = ["--program", "sssp:source=0", "--log", tmp_path / "log", "--changes", tmp_path / "c"]
    (stores / "first.csv").write_text("\n".join(CHANGES.splitlines()[:2]) + "\n")
    first = call("g.isthmus", *arguments, "--updates", "first.csv", "--json")
    assert first.json["log"]["batch"] == 1 and first.json["log"]["recovered"] is None and first.err == ""
    again = call("g.isthmus", *arguments, "--updates", "u.csv", "--batch", 1, "--check")
    assert again.code == 0 and again.out.startswith("batch 2: 1 change in ")
    assert f"note: recovered to batch 1 from {tmp_path / 'log'}: checkpoint of batch 0, 1 batch of the log" in again.err
    assert (
        again.out.splitlines()[-1].split() == ["log", f"{tmp_path / 'log'},", "batch", "4"] and ", log 0." in again.out
    )
    assert len(list((tmp_path / "c").iterdir())) == 4, "changes of earlier batches stay"
    whole = call(
        "g.isthmus",
        "--log",
        tmp_path / "log",
        "--updates",
        "u.csv",
        "--check",
        "--json",
        "-o",
        tmp_path / "now.isthmus",
    )
    assert "note: u.csv: 3 rows were applied before, and are passed over" in whole.err
    assert whole.json["batches"] == [] and whole.json["check"] == {"ok": True, "batches": 1}
    assert whole.json["programs"]["sssp"]["options"] == {"source": 0} and whole.json["programs"]["sssp"]["batch"] == 4
    assert ist.verify(tmp_path / "now.isthmus").ok
    for other, code, message in (
        (["path.isthmus", "--log", tmp_path / "log"], 4, "is another graph; name another folder"),
        (["g.isthmus", "--log", stores / "g.isthmus"], 2, "g.isthmus is a store; name a folder of its own"),
        (["g.isthmus", "--log", tmp_path / "new", "--log-size", "many"], 2, "many"),
        (["g.isthmus", "--log-size", "1MB"], 2, "log_size: expected a folder as well: give --log"),
    ):
        done = call(*other, "--updates", "u.csv")
        assert done.code == code and message in done.err, done.err
    with ist.stream(log=tmp_path / "log", threads=1):
        assert (
            "another stream is writing to this log"
            in call("g.isthmus", "--log", tmp_path / "log", "--updates", "u.csv").err
        )


@pytest.mark.timeout(300)
def test_killed_again_and_again_it_ends_as_if_it_was_not(call: Any, stores: Path, tmp_path: Path) -> None:
    assert (
        call(
            "make-workload", "g.isthmus", "--batches", 200, "--size", 10, "--seed", 3, "-o", tmp_path / "w.parquet"
        ).code
        == 0
    )
    updates = ["--program", "sssp:source=0", "--updates", str(tmp_path / "w.parquet")]
    arguments = [str(stores / "g.isthmus"), "--log", str(tmp_path / "log"), "--log-size", "2kB", *updates]
    draw, told = random.Random(1), 0
    for _ in range(4):
        with started(*arguments, stdin=subprocess.DEVNULL) as process:
            assert process.stdout is not None and process.stderr is not None
            lines = [process.stdout.readline() for _ in range(draw.randint(1, 12))]
            time.sleep(draw.random() / 50)
            process.send_signal(signal.SIGKILL)
            numbers = [int(line.split()[1].rstrip(b":")) for line in (*lines, *process.stdout)]
            assert b"Traceback" not in process.stderr.read()
        assert numbers[0] > told and numbers == list(range(numbers[0], numbers[-1] + 1)), "none is told twice"
        told = numbers[-1]
    assert told < 200
    last = call(*arguments, "--check", "-o", tmp_path / "killed.isthmus", "--json")
    assert last.code == 0 and last.json["check"]["ok"] and last.json["log"]["batch"] == 200
    assert told <= last.json["log"]["recovered"]["batch"] <= told + 1, (
        "at most the one that was being applied is there untold"
    )
    assert call("g.isthmus", *updates, "-o", tmp_path / "whole.isthmus").code == 0
    with ist.open(tmp_path / "killed.isthmus") as killed, ist.open(tmp_path / "whole.isthmus") as whole:
        assert killed.snapshot.identity() == whole.snapshot.identity()


def test_a_reader_that_goes_away(stores: Path) -> None:
    with started(str(stores / "path.isthmus"), "--updates", "-", "--window", "20ms") as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write(ONE.encode())
        process.stdin.close()
        assert process.wait(60) == 1
        assert process.stderr.read().decode() in ("", "error: input or output: Broken pipe\n"), (
            "as typer does it, or as we do"
        )


def test_a_live_line_on_a_terminal(stores: Path) -> None:
    terminal, theirs = pty.openpty()
    arguments = [
        str(stores / "path.isthmus"),
        "--program",
        "bfs:source=0",
        "--updates",
        str(stores / "u.csv"),
        "--batch",
        "1",
        "--json",
    ]
    with started(*arguments, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            seen += more
        assert process.stdout is not None
        assert len(json.loads(process.stdout.read())["batches"]) == 3
    os.close(terminal)
    assert b"waiting for changes" in seen or b"batch" in seen


def test_a_modelled_device(call: Any, tmp_path: Path) -> None:
    call("make-workload", "g.isthmus", "--batches", 2, "--size", 60, "--seed", 1, "-o", tmp_path / "w.parquet")
    where = ["--device", "model:rtx2080ti", "--memory", "20%"]
    given = ["g.isthmus", "--program", "sssp:source=0", "--updates", tmp_path / "w.parquet", *where]
    done = call(*given, "--policy", "grapin-zc", "--check", "--json")
    assert done.code == 0, done.err
    assert (done.json["device"], done.json["policy"], done.json["check"]["ok"]) == (
        "model:rtx2080ti",
        "grapin-zc",
        True,
    )
    assert done.json["transfer"]["bytes"] == sum(each["transfer"]["bytes"] for each in done.json["batches"]) > 0
    plain = call(*given)
    assert plain.code == 0 and "to model:rtx2080ti by auto" in " ".join(plain.out.split())
    found = call("compare", *given, "--json")
    assert found.code == 0, found.err
    assert [run["recipe"] for run in found.json["runs"]] == [
        "auto",
        "grapin",
        "grapin-zc",
        "grapin-page",
        "grapin-recompute",
    ]
    assert found.json["runs"][2]["transfer"]["bytes"] == done.json["transfer"]["bytes"], (
        "the same stream moves the same"
    )
    shown = call("compare", *given, "--policies", "auto,grapin-zc")
    assert shown.code == 0 and "Answers agree" in shown.out and "grapin-page" not in shown.out
    assert call(*given[:-4], "--policy", "grapin").code == 2
    shown = call("compare", *given, "--policies", "auto,grapin-zc", "--report", tmp_path / "all.html")
    assert (
        shown.code == 0
        and f"written  {tmp_path}/all.html" in shown.out
        and " Take " in f" {' '.join(shown.out.split())}"
    )
    assert "<h1>Recipes of streams on g.isthmus</h1>" in (tmp_path / "all.html").read_text()
    refused = call("compare", *given, "--report", tmp_path / "all.pdf")
    assert (refused.code, refused.out) == (2, "") and "all.pdf: expected a name that ends in .html" in refused.err
