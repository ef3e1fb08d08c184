"""An option of a run is declared once, and reaches Python, sessions and the shell."""

import subprocess
import sys
from typing import Annotated, Any, TypedDict, Unpack

import pytest

import isthmus as ist
from isthmus.cli.signatures import ShellSignature
from isthmus.errors import OptionError
from isthmus.programs.parameter import Kind
from isthmus.runtime.options import (
    CALL,
    SESSION,
    VISIBLE,
    CallOptions,
    RunOption,
    RunOptions,
    SessionOptions,
    Settings,
    call_settings,
    checked,
    declared,
    split,
)


def even(name: str, value: Any) -> None:
    if value % 2:
        raise OptionError(f"{name}: expected an even number, got {value}")


class More(TypedDict, total=False):
    lanes: Annotated[int, RunOption("Lanes to use.", default=4, check=even)]


IN_SHELL = {name for name, each in {**SESSION, **CALL}.items() if each.option.in_shell}


def test_the_classes_declare_all_options_in_order() -> None:
    assert list(SESSION) == list(SessionOptions.__annotations__)
    assert list(CALL) == list(CallOptions.__annotations__)
    assert set(RunOptions.__annotations__) == {*SESSION, *CALL}
    assert set({**SESSION, **CALL}) - set(VISIBLE) == {"rehearse"}


def test_settings_have_all_options_and_their_defaults() -> None:
    settings = Settings(memory="2GB")
    assert vars(settings) == {**{name: each.default for name, each in SESSION.items()}, "memory": "2GB"}
    assert vars(settings.changed(policy="filter")) == {**vars(settings), "policy": "filter"}
    assert settings.policy == "auto"
    assert call_settings({"restart": True}) == {**{name: each.default for name, each in CALL.items()}, "restart": True}


def test_a_command_has_the_declared_options_that_the_shell_has() -> None:
    def run(store: str, top: int = 0, **options: Unpack[RunOptions]) -> None: ...
    def plan(store: str, **options: Unpack[SessionOptions]) -> None: ...

    names = [each.name for each in ShellSignature(run).parameters]
    assert set(names) == {"store", "top", *IN_SHELL}
    assert names.index("memory") < names.index("top") < names.index("checkpoint")
    assert {each.name for each in ShellSignature(plan).parameters} == {"store", *(IN_SHELL & set(SESSION))}
    assert "policy" not in {each.name for each in ShellSignature(plan, without=("policy",)).parameters}


def test_names_on_the_shell_are_divided_at_commas() -> None:
    def run(**options: Unpack[RunOptions]) -> None: ...

    signature = ShellSignature(run)
    assert signature.arguments({"without": "cache, sweeps"}) == {"without": ("cache", "sweeps")}
    assert signature.arguments({"without": None}) == {"without": ()}


def test_an_option_that_is_declared_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default, its check and its place on the shell follow from the declaration."""
    known = declared(More)
    assert checked(known, {}) == {"lanes": 4}
    assert checked(known, {"lanes": 8}) == {"lanes": 8}
    with pytest.raises(OptionError, match="lanes: expected an even number, got 3"):
        checked(known, {"lanes": 3})
    monkeypatch.setitem(SESSION, "lanes", known["lanes"])

    def run(**options: Unpack[More]) -> None: ...

    (option,) = ShellSignature(run).parameters
    assert option.default == 4
    assert option.annotation.__metadata__[0].help == "Lanes to use."
    assert split("run", {"lanes": 2, "restart": True}) == ({}, {"lanes": 2}, {"restart": True})


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"bfs: unknown option memroy \(did you mean memory\?\); it has source, d"):
        split("bfs", {"memroy": "2GB"}, ("source",))
    with pytest.raises(OptionError, match="unknown option checkpoint_evry") as found:
        ist.bfs(ist.generate("path", vertices=3), 0, checkpoint_evry=3)
    assert "rehearse" not in str(found.value)


def test_the_shell_reads_every_option_in_a_form_that_it_knows() -> None:
    for name in IN_SHELL:
        option = {**SESSION, **CALL}[name].option
        assert option.help.endswith(".")
        assert option.kind in (Kind.PLAIN, Kind.NAMES)


def test_declarations_load_nothing_heavy() -> None:
    code = "import sys, isthmus.runtime.options; print(sorted({'numba', 'numpy', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout == "[]\n"
