"""The command line as a person or a script meets it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.caches import quiet
from tests.cli.in_process import caller
from tests.cli.outcome import slowness
from tests.processes import COMMAND, on_a_terminal, process

import isthmus as ist
from isthmus.cli.console import counted, plain, rate, short_count

KEYS = {"vertices", "edges", "arcs", "directed", "weighted", "edge_bytes"}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return caller(capsys, monkeypatch)


def test_the_three_commands_of_the_issue(call: Any) -> None:
    made = call("generate", "rmat", "--scale", 10, "--seed", 1, "-o", "a.isthmus")
    assert (made.code, made.err) == (0, "")
    checked = call("verify", "a.isthmus")
    assert checked.code == 0
    assert checked.out.startswith("a.isthmus is sound: 24 blocks, 98.3 kB, in ")
    told = call("info", "a.isthmus", "--json")
    assert told.code == 0
    assert set(told.json) >= KEYS
    assert told.json == {**ist.open("a.isthmus").info(), "path": "a.isthmus"}
    assert (told.json["vertices"], told.json["directed"], told.json["weighted"]) == (1024, False, False)
    assert told.json["arcs"] == 2 * told.json["edges"]
    assert told.json["edge_bytes"] == 4 * told.json["arcs"]


def test_json_is_one_object_from_every_command(call: Any) -> None:
    made = call("generate", "grid", "--rows", 3, "--columns", 4, "-o", "g.isthmus", "--json")
    assert set(made.json) >= KEYS | {"report", "seconds"}
    read = call("ingest", "g.isthmus", "-o", "h.isthmus", "--order", "hub", "--json")
    assert set(read.json) >= KEYS
    assert read.json["order"] == "hub"
    checked = call("verify", "h.isthmus", "--json")
    assert checked.json["ok"]
    assert checked.json["problems"] == []
    assert all(outcome.err == "" for outcome in (made, read, checked))


def test_the_table_of_a_generated_graph(call: Any) -> None:
    lines = call(
        "generate", "uniform", "--vertices", 1500, "--edges", 3000, "--weights", "1:9", "-o", "g.isthmus"
    ).out.splitlines()
    graph = ist.open("g.isthmus")
    assert lines[0] == "g.isthmus"
    assert lines[1:6] == [
        "vertices     1,500",
        f"edges        {graph.edges:,} undirected, weighted (int32)",
        f"arcs stored  {graph.arcs:,}",
        f"edge bytes   {graph.edge_bytes:,} ({graph.edge_bytes / 1000:.3g} kB)",
        "ids, order   dense, natural",
    ]
    assert lines[6].startswith("made         3,000 edges in ")
    assert all(line == line.rstrip() for line in lines)


def test_one_of_a_kind_is_singular(call: Any) -> None:
    assert "made         1 edge in " in call("generate", "path", "--vertices", 2, "-o", "g.isthmus").out
    assert "edge bytes   8 B\n" in call("info", "g.isthmus").out
    lone = call("generate", "path", "--vertices", 1, "-o", "lone.isthmus")
    assert "edges        0 undirected\n" in lone.out
    assert lone.err == "note: generate path: no edges\n"
    assert "lone.isthmus is sound: 1 block, 4.1 kB" in call("verify", "lone.isthmus").out


def test_what_info_says_of_a_full_store(call: Any) -> None:
    call("generate", "rmat", "--scale", 8, "--directed", "--weights", "0.0:1.0", "--order", "hub", "-o", "g.isthmus")
    text = call("info", "g.isthmus").out
    graph = ist.open("g.isthmus")
    assert f"arcs stored         {graph.arcs:,} and as many in-edges\n" in text
    assert f"in.weights          {graph.arcs:,} x float64, " in text
    assert "ids, order          dense, hub\n" in text


def test_every_option_arrives(call: Any) -> None:
    options = [
        "--edge-factor",
        3.5,
        "--preset",
        "parmat",
        "--permute",
        "--seed",
        9,
        "--directed",
        "--weights",
        "1:7",
        "--weight-type",
        "float32",
        "--self-loops",
        "keep",
        "--parallel",
        "keep",
        "--no-in-edges",
        "--order",
        "hub",
        "--memory",
        "64MB",
        "--threads",
        1,
    ]
    made = call("generate", "rmat", "--scale", 6, *options, "-o", "g.isthmus", "--json").json
    assert (made["edges"], made["weight_type"], made["in_edges"], made["order"]) == (224, "float32", False, "hub")
    wanted = ist.generate(
        "rmat",
        scale=6,
        edge_factor=3.5,
        preset="parmat",
        permute=True,
        seed=9,
        directed=True,
        weights="1:7",
        weight_dtype="float32",
        self_loops="keep",
        parallel="keep",
        in_edges=False,
        order="hub",
    )
    graph = ist.open("g.isthmus")
    for name in wanted.store.manifest.sections:
        assert graph.store.read(name).tobytes() == wanted.store.read(name).tobytes()


def test_probabilities_by_hand(call: Any) -> None:
    for name, options in {"one": ["--a", 0.5, "--b", 0.2, "--c", 0.2], "other": ["--preset", "parmat"]}.items():
        assert call("generate", "rmat", "--scale", 7, *options, "-o", f"{name}.isthmus").code == 0
    one, other = (ist.open(f"{name}.isthmus").store.read("out.targets") for name in ("one", "other"))
    assert one.tolist() == other.tolist()


def test_overwrite(call: Any) -> None:
    call("generate", "path", "--vertices", 5, "-o", "g.isthmus")
    assert call("generate", "star", "--vertices", 7, "-o", "g.isthmus", "--overwrite").code == 0
    assert ist.open("g.isthmus").out_degree(0) == 6


EXISTING = ("generate", "path", "--vertices", "3", "-o", "here.isthmus")
MISTAKES: list[tuple[list[str], int, str]] = [
    (["info", "gone.isthmus"], 4, "gone.isthmus: no such store"),
    (["verify", "gone.isthmus"], 4, "gone.isthmus: no such store"),
    (["info", "edges.txt"], 4, "edges.txt: is a file, expected a store, which is a folder; isthmus ingest"),
    (["verify", "."], 4, ".: is not an Isthmus store (no manifest.json)"),
    (
        ["info", "cut.isthmus"],
        4,
        "cut.isthmus/out.targets: expected 4096 bytes by the manifest, found 10; the store is damaged",
    ),
    (["ingest", "cut.isthmus", "-o", "new.isthmus"], 4, "found 10; the store is damaged"),
    (["generate", "path", "--vertices", "3", "-o", "graph"], 2, "a store's name ends in .isthmus: graph does not"),
    (["generate", "path", "--vertices", "3", "-o", "no/new.isthmus"], 4, "/no: no such folder"),
    (
        ["generate", "path", "--vertices", "3", "-o", "here.isthmus"],
        4,
        "here.isthmus: exists already; give --overwrite",
    ),
    (
        ["generate", "path", "--vertices", "3", "-o", "plain.isthmus", "--overwrite"],
        4,
        "exists and is not an Isthmus store",
    ),
    (["generate", "path", "--vertices", "-3", "-o", "new.isthmus"], 2, "'--vertices'"),
    (["generate", "path", "--vertices", "many", "-o", "new.isthmus"], 2, "'--vertices'"),
    (["generate", "path", "-o", "new.isthmus"], 2, "Missing option '--vertices'"),
    (["generate", "path", "--vertices", "3"], 2, "Missing option '-o' / '--output'"),
    (["generate", "moon", "-o", "new.isthmus"], 2, "No such command 'moon'"),
    (["generate", "rmat", "--scale", "99", "-o", "new.isthmus"], 2, "'--scale'"),
    (
        ["generate", "rmat", "--scale", "3", "--edge-factor", "inf", "-o", "new.isthmus"],
        2,
        "expected an edge factor above 0, got inf",
    ),
    (["generate", "rmat", "--scale", "3", "--a", "0.5", "-o", "new.isthmus"], 2, "give --a, --b and --c together"),
    (["generate", "rmat", "--scale", "3", "--weights", "9", "-o", "new.isthmus"], 2, "expected weights as LOW:HIGH"),
    (
        ["generate", "rmat", "--scale", "3", "--weights=-9:9", "-o", "new.isthmus"],
        2,
        "expected weights with 0 <= LOW <= HIGH",
    ),
    (
        ["generate", "rmat", "--scale", "3", "--memory", "5 bananas", "-o", "new.isthmus"],
        2,
        "expected a size such as 512MB",
    ),
    (["generate", "rmat", "--scale", "3", "--threads", "0", "-o", "new.isthmus"], 2, "'--threads'"),
    (["generate", "rmat", "--scale", "3", "--order", "random", "-o", "new.isthmus"], 2, "'--order'"),
    (["generate", "rmat", "--scale", "3", "--colour", "red", "-o", "new.isthmus"], 2, "No such option"),
    (["ingest", "gone.txt", "-o", "new.isthmus"], 3, "gone.txt: no such file"),
    (["ingest", "edges.txt", "-o", "new.isthmus", "-o", "other.isthmus"], 2, "--output: expected once, got it 2 times"),
    (
        ["ingest", "edges.txt", "-o", "s3://b/new.isthmus"],
        4,
        "s3://b/new.isthmus: is an address; a store can be written",
    ),
    (["run", "bfs", "here.isthmus", "--source=1", "--source", "2"], 2, "--source: expected once, got it 2 times"),
    (["run", "bfs", "here.isthmus", "--source", "1", "-o", "s3://b/r.csv"], 4, "s3://b/r.csv: is an address; a result"),
    (
        ["run", "minimum_spanning_tree", "here.isthmus"],
        2,
        "No such command 'minimum_spanning_tree'; did you mean minimum_spanning_forest?",
    ),
    (["run", "pagerank", "here.isthmus", "--damping", "0.5"], 2, "No such option: --damping; did you mean --alpha?"),
    (["run", "pagerank", "here.isthmus", "--max-iterations", "5"], 2, "did you mean --max-iter?"),
    (["ingest", "edges.txt", "-o", "new.isthmus", "--format", "docx"], 2, "expected one of text, "),
    (["ingest", "edges.txt", "-o", "new.isthmus", "--weight", "cost"], 2, "give --header"),
    (["ingest", "edges.txt", "-o", "new.isthmus", "--vertices", "3"], 3, "expected ids from 0 to 2, got 9"),
    (["ingest", "bad.txt", "-o", "new.isthmus"], 3, "bad.txt:2: expected 'source target"),
    (["ingest", "here.isthmus", "-o", "new.isthmus", "--weight", "3"], 2, "--weight does not apply"),
    (["ingest", "here.isthmus", "-o", "new.isthmus", "--directed"], 2, "it cannot become directed"),
    (["--nonsense"], 2, "No such option"),
    (["frobnicate"], 2, "No such command 'frobnicate'"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "message"), MISTAKES, ids=[" ".join(arguments) for arguments, _, _ in MISTAKES]
)
def test_a_mistake_is_one_line(call: Any, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    call(*EXISTING)
    call("generate", "path", "--vertices", 9, "-o", "cut.isthmus")
    os.truncate("cut.isthmus/out.targets", 10)
    Path("edges.txt").write_text("0 1\n1 9\n")
    Path("bad.txt").write_text("0 1\n1 two\n")
    Path("plain.isthmus").write_text("precious")
    before = sorted(entry.name for entry in tmp_path.iterdir())
    outcome = call(*arguments)
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_notes_name_the_flags_and_come_once(call: Any) -> None:
    Path("both.csv").write_text("source,target,cost\nx,y,1\ny,x,1\ntarget,source,2\n")
    outcome = call("ingest", "both.csv", "-o", "g.isthmus", "--undirected")
    assert outcome.err == (
        "note: both.csv:1: 'source,target,cost' looks like names of columns and is read as an edge; give --header to "
        "read it as names\n"
        "note: both.csv: one further column ignored; --weight 3 reads a column as the weight, "
        "--weight none says that there are no weights\n"
        "note: both.csv: every edge is listed in both directions, and --undirected stores it twice; "
        "give --parallel drop to keep one edge per pair\n"
    )


def test_mistakes_in_the_words_point_to_the_help(call: Any) -> None:
    assert call("generate", "rmat", "--scale", "3").err.endswith("(see isthmus generate rmat --help)\n")
    assert call("frobnicate").err.endswith("(see isthmus --help)\n")
    done = call("ingest", "a.txt", "b.txt", "-o", "g.isthmus")
    assert done.code == 2 and "write a pattern in quotes: 'edges-*.csv'" in done.err
    assert (
        "expected a file, as some inputs are read twice, got standard input"
        in call("ingest", "-", "-o", "g.isthmus").err
    )


def test_damage_is_named_and_exits_with_4(call: Any) -> None:
    call(*EXISTING)
    data = bytearray(Path("here.isthmus/out.targets").read_bytes())
    data[2] ^= 1
    Path("here.isthmus/out.targets").write_bytes(data)
    outcome = call("verify", "here.isthmus")
    wanted = "section out.targets, block 0 (bytes 0 to 4095): the checksum does not match"
    assert (outcome.code, outcome.out, outcome.err) == (4, "", f"error: here.isthmus: {wanted}\n")
    as_json = call("verify", "here.isthmus", "--json", "--threads", 1)
    assert (as_json.code, as_json.err) == (4, "")
    assert (as_json.json["ok"], as_json.json["problems"]) == (False, [wanted])


@pytest.mark.parametrize(
    "name", ["[red]x[bold].isthmus", "[x].isthmus", "two words.isthmus", "ü日本.isthmus", "x" * 120 + ".isthmus"]
)
def test_names_come_out_as_they_are(call: Any, name: str) -> None:
    made = call("generate", "path", "--vertices", 3, "-o", name)
    assert made.code == 0
    assert made.out.splitlines()[0] == name
    assert call("info", name).out.splitlines()[0] == name
    assert call("verify", name).out.startswith(f"{name} is sound: ")
    assert f"{name}: exists already" in call("generate", "path", "--vertices", 3, "-o", name).err


def test_line_breaks_and_bytes_in_names_are_escaped(call: Any) -> None:
    assert call("info", "a\nb\x1b[31m\udcff.isthmus").err == "error: a\\nb\\x1b[31m\\udcff.isthmus: no such store\n"


def test_help_and_version(call: Any) -> None:
    assert call("--version").out == f"isthmus {ist.__version__}\n"
    for command in (
        ["-h"],
        ["generate", "--help"],
        ["generate", "rmat", "-h"],
        ["ingest", "-h"],
        ["info", "-h"],
        ["verify", "-h"],
    ):
        outcome = call(*command)
        assert (outcome.code, outcome.err) == (0, "")
        assert "Usage: isthmus" in outcome.out and "<bool>" not in outcome.out
    for kind, option in {
        "rmat": "--scale",
        "uniform": "--edges",
        "grid": "--rows",
        "path": "--vertices",
        "star": "--vertices",
    }.items():
        text = call("generate", kind, "--help").out
        assert all(
            word in text for word in (option, "--output", "--seed", "--weights", "--memory", "--overwrite", "--json")
        )
    assert "--permute" not in call("generate", "path", "--help").out


def test_without_arguments_it_helps(call: Any) -> None:
    for command in ([], ["generate"]):
        outcome = call(*command)
        assert outcome.code == 2
        assert "Usage: isthmus" in outcome.out
        assert outcome.err == ""


@pytest.mark.alone
def test_help_is_quick() -> None:
    script = Path(sys.executable).with_name("isthmus")
    command = [str(script)] if script.exists() else COMMAND

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([*command, "--help"], check=True, capture_output=True)
        return time.perf_counter() - start

    seconds()  # the first one may compile Python files
    assert statistics.median(seconds() for _ in range(3)) < 0.4 * slowness()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, isthmus.cli.main; print(sorted({'numba', 'numpy', 'pyarrow', 'scipy', 'duckdb'} & "
        "set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_closed_pipe_is_no_drama(tmp_path: Path, more: list[str]) -> None:
    ist.generate("path", tmp_path / "g.isthmus", vertices=3).close()
    read, write = os.pipe()
    os.close(read)
    outcome = subprocess.run(
        [*COMMAND, "info", str(tmp_path / "g.isthmus"), *more], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (outcome.returncode, outcome.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_output_to_a_full_disk(tmp_path: Path, more: list[str]) -> None:
    ist.generate("path", tmp_path / "g.isthmus", vertices=3).close()
    with Path("/dev/full").open("w") as full:
        outcome = subprocess.run(
            [*COMMAND, "info", str(tmp_path / "g.isthmus"), *more], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (outcome.returncode, outcome.stderr) == (1, "error: input or output: No space left on device\n")


def test_a_path_that_is_no_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff.isthmus")
    made = process("generate", "path", "--vertices", 3, "-o", name)
    assert (made.returncode, quiet(made.stderr)) == (0, "")
    assert "\\udcff.isthmus\n" in made.stdout
    assert json.loads(process("info", name, "--json").stdout)["path"] == name


def test_a_terminal_gets_a_progress_bar(tmp_path: Path) -> None:
    done = on_a_terminal("generate", "rmat", "--scale", 17, "-o", tmp_path / "g.isthmus", "--json")
    shown = done.stderr
    assert done.returncode == 0 and set(json.loads(done.stdout)) >= KEYS
    assert "reading" in shown or "sorting" in shown
    assert "edges/s" in shown or "arcs/s" in shown
    assert "\x1b[" in shown
    done = on_a_terminal("verify", tmp_path / "g.isthmus")
    assert done.returncode == 0 and ("checksums" in done.stderr or "structure" in done.stderr)


def test_no_terminal_no_progress_bar(tmp_path: Path) -> None:
    made = process("generate", "rmat", "--scale", 12, "-o", tmp_path / "g.isthmus")
    assert (made.returncode, quiet(made.stderr)) == (0, "")
    assert "\x1b" not in made.stdout


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(0, "0"), (7.84, "7.84"), (999, "999"), (999.6, "1 k"), (1234567, "1.23 M"), (5e9, "5 G"), (2e12, "2 T")],
)
def test_numbers_for_people(count: float, wanted: str) -> None:
    assert short_count(count) == wanted


def test_words_for_people() -> None:
    assert (counted(0, "edge"), counted(1, "edge"), counted(1234, "edge")) == ("0 edges", "1 edge", "1,234 edges")
    assert (rate(12_300_000, "B"), rate(12_300_000, "edges"), rate(5, "B")) == ("12.3 MB/s", "12.3 M edges/s", "5 B/s")
    assert plain("a [b] \\ é\t\x07\n") == "a [b] \\ é\\t\\x07\\n"


def test_devices_are_listed_and_a_store_is_not_needed(call: Any) -> None:
    told = call("info", "--devices", "--json")
    assert told.code == 0
    devices = {each["device"]: each for each in told.json["devices"]}
    assert devices["cpu"]["usable"]
    assert devices["model:rtx2080ti"]["usable"]
    assert any(name.startswith("cuda") for name in devices)
    shown = call("info", "--devices")
    assert shown.out.startswith("devices\ncpu")
    for arguments in ((), ("a.isthmus", "--devices")):
        assert call("info", *arguments).err == "error: info: expected a store, such as graph.isthmus, or --devices\n"


def test_a_gpu_that_is_not_there_is_refused_in_one_line(call: Any) -> None:
    call("generate", "rmat", "--scale", 4, "--seed", 1, "-o", "a.isthmus")
    refused = call("run", "bfs", "a.isthmus", "--source", 0, "--device", "cuda:9999")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith("error: device: cuda:9999: ")
    assert refused.err.endswith("; --device cpu runs here, --device model:rtx2080ti models a GPU\n")
