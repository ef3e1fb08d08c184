"""Parts of other packages: found by name and by ending, and a clear error where one is broken."""

from __future__ import annotations

import errno
import importlib.machinery
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus import plugins
from isthmus.cli import help_lists
from isthmus.engines.engine import Engine
from isthmus.engines.registry import ENGINES, NAMES, code_of, colour_of, engine
from isthmus.errors import GraphFormatError, OptionError, PluginError
from isthmus.graph.formats import FORMATS, Format, Option, built_in_endings, format_of
from isthmus.graph.formats.text import TextSource
from isthmus.policies.policy import Fixed
from isthmus.policies.recipe import Recipe
from isthmus.policies.recipes import RECIPES, recipe
from isthmus.report import draw

PLUGIN = Path(__file__).parent.parent / "examples" / "plugin"
SHOWN = """\
installed: tiny_algorithm, tiny_device, tiny_engine, tiny_format, tiny_recipe
read: 4 vertices, 5 edges
most reliable paths: {'reached': 3335}
in a session: {'reached': 2917}
bfs by pairs: two_at_once
recorded: True on recorder
drawn in its colour: True
ingested by the shell: 5 edges
ingested by name: 2 edges
compared: emogi by zero_copy, pairs by two_at_once
planned: filter, zero_copy, compaction, unified, two_at_once
run by the shell: {'reached': 2917}
devices: True
help lists reliability: True
help lists pairs: True
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package on the path: entry points by group, and the text of its one module."""
    loaded = [dict(catalogue._parts) for catalogue in (FORMATS, RECIPES, ENGINES)]

    def make(package: str, entries: dict[str, dict[str, str]], module: str = "") -> None:
        folder = tmp_path / "site" / package
        about = folder / f"{package}-2.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n")
        text = "".join(
            f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in parts.items()) for group, parts in entries.items()
        )
        (about / "entry_points.txt").write_text(text)
        (folder / f"{package}_module.py").write_text(module)
        monkeypatch.syspath_prepend(str(folder))
        plugins.entry_points.cache_clear()

    plugins.entry_points.cache_clear()
    yield make
    for catalogue, before in zip((FORMATS, RECIPES, ENGINES), loaded, strict=True):
        catalogue._parts = before
    plugins.entry_points.cache_clear()


# ---- files of ours


def test_a_folder_is_listed_without_importing_it():
    code = (
        "import sys; from isthmus import plugins; "
        "assert 'zero_copy' in plugins.built_in('isthmus.engines'); "
        "assert [d.name for d in plugins.declarations('isthmus.engines', 'Engine')]; "
        "from isthmus.cli import help_lists; help_lists.recipes(), help_lists.formats(); "
        "print([name for name in sys.modules if name.split('.')[0] in ('numba', 'numpy', 'pyarrow')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_file_whose_state_cannot_be_read_is_not_left_out(monkeypatch):
    really = plugins.pkgutil.iter_modules

    def one_more(path):
        known = list(really(path))
        return [*known, known[0]._replace(name="vanished")]

    monkeypatch.setattr(plugins.pkgutil, "iter_modules", one_more)
    with pytest.raises(OSError, match=r"Input/output error: 'module isthmus\.engines\.vanished'"):
        plugins.declarations("isthmus.engines", "Engine")
    monkeypatch.setattr(plugins.pkgutil, "iter_modules", lambda path: [])
    for list_modules in (plugins.built_in, lambda package: plugins.declarations(package, "Engine")):
        with pytest.raises(OSError, match=r"Input/output error: 'package isthmus\.engines'"):
            list_modules("isthmus.engines")


@pytest.mark.parametrize("catalogue", [FORMATS, RECIPES, ENGINES], ids=["formats", "recipes", "engines"])
def test_what_is_read_from_a_file_is_what_its_part_says(catalogue):
    for name, declared in catalogue.declared.items():
        assert catalogue[name].name == name
        for fact, value in declared.facts.items():
            assert getattr(catalogue[name], fact) == value


def test_every_format_and_recipe_has_words_and_every_engine_a_code():
    assert all(FORMATS.words().values()) and all(RECIPES.words().values())
    assert NAMES == {1: "filter", 2: "zero_copy", 3: "resident", 4: "compaction", 5: "unified", 6: "cache"}
    # of formats that share one, all but one say how their files are known.
    for ending, names in built_in_endings().items():
        facts = [FORMATS.declared[name].facts for name in names]
        assert sum(not each.get("begins") and not each.get("described") for each in facts) <= 1, ending
        assert len(names) == 1 or ending in (".gr", ".adj", ".graph", ".properties")


# ---- parts of this process


def test_parts_may_be_added_by_a_script(tmp_path, monkeypatch):
    monkeypatch.setitem(
        FORMATS,
        "colon",
        Format(
            "colon",
            lambda path, options: TextSource(path, options),
            (".colon",),
            "colons",
            ("comments",),
            (Option("most", "edges to read", 5), Option("strict", "", False), Option("share", "", 0.5)),
        ),
    )
    path = tmp_path / "g.colon"
    path.write_text("1 2\n2 3\n")
    assert format_of(path) == "colon"
    assert ist.read(path, most=3, comments="!").edges == 2
    with pytest.raises(OptionError, match=r"g.colon: is colons; header= does not apply to it"):
        ist.read(path, header=True)
    with pytest.raises(
        OptionError, match=r"unknown option least; known: .*; format colon has most, strict, share of its own"
    ):
        ist.read(path, least=3)
    wrong = (("most", "many", "a whole number"), ("strict", "perhaps", "true or false"), ("share", "half", "a number"))
    for name, value, expected in wrong:
        with pytest.raises(OptionError, match=rf"g.colon: option {name}: expected {expected}, got '{value}'"):
            ist.read(path, **{name: value})
    assert FORMATS["colon"].own_values(path, {"strict": "Yes", "most": "7"}) == {
        "most": 7,
        "strict": True,
        "share": 0.5,
    }
    with pytest.raises(OptionError, match="unknown option most"):
        ist.read((np.array([1]), np.array([2])), most=3)
    monkeypatch.delitem(FORMATS, "colon")
    assert format_of(path) == "text"


def test_another_engine_gets_the_next_code(monkeypatch):
    monkeypatch.setitem(ENGINES, "other", type("Other", (engine("filter"),), {"name": "other", "colour": "#123456"}))
    monkeypatch.setattr("isthmus.engines.registry.NAMES", dict(NAMES))
    monkeypatch.setattr("isthmus.engines.registry._OTHERS", {})
    assert code_of("other") == code_of("other") == 7
    assert (colour_of("other"), colour_of("nobody")) == ("#123456", Engine.colour)
    with pytest.raises(PluginError, match=r"engine: expected one of filter, zero_copy, .*, other, got 'wings'"):
        code_of("wings")


def test_a_recipe_with_variants(monkeypatch):
    fast = Recipe("mine:fast", Fixed("mine", 1))
    monkeypatch.setitem(
        RECIPES, "mine", Recipe("mine", Fixed("mine", 1), colour="#abcdef", dash="-.", variants={"fast": lambda: fast})
    )
    assert recipe("mine:fast") == fast
    assert draw.line("mine") == ("#abcdef", "-.")
    with pytest.raises(OptionError, match="policy: expected one of mine:fast, got 'mine:slow'"):
        recipe("mine:slow")
    with pytest.raises(OptionError, match=r"expected one of filter, .*, auto, mine, got 'filter:fast'"):
        recipe("filter:fast")


# ---- packages


@pytest.mark.timeout(300)
def test_a_package_with_a_part_of_each_kind():
    found = subprocess.run([sys.executable, str(PLUGIN / "use.py")], capture_output=True, text=True, timeout=280)
    assert (found.returncode, found.stdout) == (0, SHOWN), found.stderr


BROKEN = {
    "isthmus.recipes": {"bad": "broken_module:RECIPE"},
    "isthmus.formats": {"bad": "broken_module:FORMAT"},
    "isthmus.engines": {"bad": "nowhere_at_all:Engine"},
}


def test_a_broken_package_is_named_when_its_part_is_used_and_not_before(install, tmp_path):
    install("broken", BROKEN, "raise RuntimeError('no licence')\n")
    with pytest.raises(
        PluginError,
        match=(
            r"recipe 'bad' of broken 2.0 \(entry point bad = broken_module:RECIPE of isthmus.recipes\) cannot be "
            r"loaded: "
            r"RuntimeError: no licence$"
        ),
    ):
        recipe("bad")
    with pytest.raises(
        PluginError, match=r"engine 'bad' of broken 2.0 .*cannot be loaded: ModuleNotFoundError: No module named"
    ):
        code_of("bad")
    path = tmp_path / "g.txt"
    path.write_text("1 2\n")
    with pytest.raises(PluginError, match=r"format 'bad' of broken 2.0"):
        ist.read(path, format="bad")
    assert ist.read(path).edges == 1
    assert recipe("filter").name == "filter"
    assert "bad (from broken)" in help_lists.recipes() and "bad (from broken)" in help_lists.formats()
    with pytest.raises(OptionError, match=r"expected one of filter, .*, auto, bad, got 'worse'"):
        recipe("worse")


def test_an_ending_that_nobody_has_warns_of_formats_that_cannot_be_loaded(install, tmp_path):
    install("broken", BROKEN, "raise RuntimeError('no licence')\n")
    path = tmp_path / "g.strange"
    path.write_text("1 2\n")
    with pytest.warns(
        UserWarning, match=r"format 'bad' of broken 2.0 .*no licence; files are read as if it were not installed"
    ):
        assert ist.read(path).edges == 1


def test_the_shell_goes_on_beside_a_broken_package(install, tmp_path):
    install("broken", BROKEN, "raise RuntimeError('no licence')\n")
    shell = [sys.executable, "-m", "isthmus.cli.main"]
    environment = {"PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "COLUMNS": "200"}
    for words in (["--help"], ["run", "bfs", "--help"], ["ingest", "--help"]):
        found = subprocess.run([*shell, *words], env=environment, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
    (tmp_path / "g.txt").write_text("1 2\n")
    bad = subprocess.run(
        [*shell, "ingest", "g.txt", "-o", "g.isthmus", "--format", "bad"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (bad.returncode, bad.stderr.count("\n")) == (PluginError.exit_code, 1), bad.stderr
    assert "broken 2.0" in bad.stderr


def test_a_built_in_name_stays_ours(install):
    install("greedy", {"isthmus.recipes": {"filter": "greedy_module:R", "fine": "greedy_module:R"}}, "R = None\n")
    assert recipe("filter").policy.engines == ("filter",)
    clash = r"recipe 'filter' of greedy 2.0 \(entry point .*\) has the name of a built-in recipe; it needs another name"
    with pytest.raises(PluginError, match=clash):
        recipe("fine")
    with pytest.raises(OptionError, match=rf"got 'nobody'; {clash}"):
        recipe("nobody")
    assert help_lists.recipes().count("filter (") == 1


def test_an_ending_and_an_option_of_ours_stay_ours(install, tmp_path):
    text = "from isthmus.graph.formats import Format, Option\n"
    text += (
        "T = Format('taker', print, endings=('.csv',))\nO = Format('other', print, options=(Option('weight', ''),))\n"
    )
    install("taking", {"isthmus.formats": {"taker": "taking_module:T", "other": "taking_module:O"}}, text)
    (tmp_path / "g.csv").write_text("1,2\n")
    assert ist.read(tmp_path / "g.csv").edges == 1
    with pytest.raises(
        PluginError, match=r"taking 2.0 .*: format 'taker' declares the ending .csv, which format text has"
    ):
        ist.read(tmp_path / "g.csv", format="taker")
    with pytest.raises(
        PluginError, match=r"taking 2.0 .*: format 'other' declares the option weight, which all formats have"
    ):
        ist.read(tmp_path / "g.csv", format="other")


def test_what_is_no_part_or_has_another_name(install):
    text = "from isthmus.policies.policy import Fixed\nfrom isthmus.policies.recipe import Recipe\n"
    text += "R, N = Recipe('right', Fixed('x', 1)), 7\n"
    install("odd", {"isthmus.recipes": {"wrong": "odd_module:R", "number": "odd_module:N"}}, text)
    with pytest.raises(PluginError, match=r"odd 2.0 \(.*\): expected Recipe 'wrong', got one named 'right'"):
        recipe("wrong")
    with pytest.raises(PluginError, match=r"odd 2.0 \(.*\): expected Recipe 'number', got 7"):
        recipe("number")


def test_two_packages_with_one_name(install):
    for package in ("one", "two"):
        install(package, {"isthmus.recipes": {"same": f"{package}_module:R"}})
    with pytest.raises(
        PluginError, match=r"recipe 'same' is declared more than once: one 2.0 .*; two 2.0 .*; uninstall all but one"
    ):
        recipe("same")


def test_a_format_of_another_package_may_read_what_ours_refuse(install, tmp_path):
    text = "from isthmus.graph.formats import Format\nfrom isthmus.graph.formats.text import TextSource\n"
    install(
        "zips",
        {"isthmus.formats": {"zip": "zips_module:ZIP"}},
        text + "ZIP = Format('zip', TextSource, endings=('.zip',))\n",
    )
    path = tmp_path / "g.zip"
    path.write_text("1 2\n")
    assert ist.read(path).edges == 1
    (tmp_path / "g.xz").write_text("1 2\n")
    with pytest.raises(GraphFormatError, match="compressed with xz"):
        ist.read(tmp_path / "g.xz")


def test_a_file_of_the_package_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, path: str) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(importlib.machinery.SourceFileLoader, "get_data", fail)
    with pytest.raises(OSError, match=r"Input/output error: '.*engines/\w+\.py'"):
        plugins.declarations("isthmus.engines", "Engine")
