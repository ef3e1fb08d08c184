"""Devices: the figures that come with Isthmus, and files that users write."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest

from isthmus.devices.model.figures import SECTIONS, GpuFigures, builtin, find, parse
from isthmus.errors import OptionError

NAMES = ["a100", "a5000", "gh200", "gtx1080", "h100", "p100", "rtx2080ti"]
WHOLE = (files("isthmus.devices.model") / "profiles" / "rtx2080ti.toml").read_text("utf-8")


def test_what_comes_with_isthmus():
    assert builtin() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_source(name: str) -> None:
    device = find(f"model:{name}")
    figures = {f"{table}.{field.name}" for table, kind in SECTIONS.items() for field in fields(kind)}
    assert device.sources.keys() == figures
    assert all(len(source) > 10 for source in device.sources.values())


@pytest.mark.parametrize("name", NAMES)
def test_short_requests_follow_emogi(name: str) -> None:
    """A request of s bytes takes 0.625 + 0.375 s / 128 of the time of a full one, so 32 B reach about a third."""
    direct = find(name).link.direct
    expected = [s / 128 / (0.625 + 0.375 * s / 128) * direct[-1] for s in (32, 64, 96, 128)]
    assert direct == pytest.approx(expected, rel=1e-3)
    assert direct[0] / direct[-1] == pytest.approx(1 / 3, abs=0.02)


def test_what_policies_see() -> None:
    profile = find("rtx2080ti").profile()
    assert (profile.bandwidth, profile.block, profile.depth, profile.measured) == (12.3e9, 128, 256, False)
    assert profile.break_even_gap == 128, "a full request costs what its bytes cost in bulk"
    assert profile.compaction == pytest.approx(10 * 3.84e9 * 2 / 3), (
        "lists of 128 bytes: half of what is fetched is not wanted"
    )
    assert "RTX 2080 Ti" in str(profile)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "a100"\nname = "Mine"\n[link]\nbandwidth = { value = 24e9, source = "measured here" }\n')
    device = find(f"model:{path}")
    assert (device.name, device.link.bandwidth, device.sources["link.bandwidth"]) == ("Mine", 24e9, "measured here")
    assert device.near == find("a100").near, "the rest is that of the base"


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    assert find(str(path)) == find("rtx2080ti")


def test_a_figure_that_may_be_0() -> None:
    assert parse(WHOLE, "mine.toml").managed.counted_requests == 0
    for value in ("-1", "0.0", "1.5", "true", "2e18"):
        expected = r"\[managed\] counted_requests: value: expected a whole number from 0 to 1e18"
        refused(changed("counted_requests", f'{{ value = {value}, source = "x" }}'), expected)


@pytest.mark.parametrize("name", ["v100", "", "rtx2080ti.toml.bak"])
def test_a_name_that_is_not_known(name: str) -> None:
    with pytest.raises(
        OptionError, match=rf"model:{name}: expected one of a100, .*, or a file such as model:\./mine\.toml"
    ):
        find(f"model:{name}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none\.toml: No such file"):
        find(str(tmp_path / "none.toml"))
    with pytest.raises(OptionError, match="Is a directory"):
        find(f"{tmp_path}/")
    (tmp_path / "odd.toml").write_bytes(b"name = \xff")
    with pytest.raises(OptionError, match=r"odd\.toml: not a text file in UTF-8"):
        find(str(tmp_path / "odd.toml"))


def changed(key: str, value: str, text: str = WHOLE) -> str:
    """The text of a device with one line replaced; an empty value removes it."""
    text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}" if value else "", text, flags=re.MULTILINE)
    assert count >= 1
    return text


def refused(text: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        parse(text, "mine.toml")


def test_missing() -> None:
    refused(changed("in_flight", ""), r"mine\.toml: \[link\] in_flight is missing; give in_flight = \{ value")
    refused(changed("name", ""), r'mine\.toml: name: expected name = "\.\.\.", got nothing')
    refused(changed("name", '"a\tb"'), r"mine\.toml: name: expected")
    refused(changed("name", "7"), r"mine\.toml: name: expected .*, got 7")


def test_unknown() -> None:
    refused(
        WHOLE.replace("in_flight", "inflight"),
        r"mine\.toml: \[link\] inflight: unknown; expected bandwidth, .*in_flight",
    )
    refused(
        WHOLE + "\n[cpu]\n", r"mine\.toml: cpu: unknown; expected name, base and the tables link, managed, near, host"
    )
    refused('base = "v100"\n' + WHOLE, r"mine\.toml: base: expected one of a100, .*, got 'v100'")


def test_of_the_wrong_kind() -> None:
    refused("name = ", r"mine\.toml: not TOML")
    refused('name = "x"\nlink = 3\n', r"mine\.toml: link: expected a table of figures, got 3")
    refused(
        changed("cores", "10"), r'mine\.toml: \[host\] cores: expected \{ value = \.\.\., source = "\.\.\." \}, got 10'
    )
    refused(changed("cores", "{ value = 10 }"), r"\[host\] cores: expected \{ value")
    refused(
        changed("cores", '{ value = 10, source = " " }'),
        r"\[host\] cores: source: expected where the figure was published",
    )
    refused(
        changed("cores", '{ value = 2.5, source = "x" }'),
        r"\[host\] cores: value: expected a whole number from 1 to 1e18, got 2\.5",
    )
    refused(
        changed("cores", '{ value = true, source = "x" }'),
        r"\[host\] cores: value: expected a whole number from 1 to 1e18, got True",
    )
    refused(
        changed("back_bandwidth", '{ value = "fast", source = "x" }'),
        r"\[link\] back_bandwidth: value: .* to 1e18, got 'fast'",
    )
    refused(
        changed("back_bandwidth", '{ value = inf, source = "x" }'), r"expected a number from 1e-18 to 1e18, got inf"
    )
    refused(
        changed("fault_seconds", '{ value = 0, source = "x" }'),
        r"fault_seconds: value: expected a number from 1e-18 to 1e18, got 0",
    )
    refused(
        changed("direct", '{ value = 3, source = "x" }'),
        r"direct: value: expected a list of numbers from 1e-18 to 1e18, got 3",
    )


def test_figures_that_do_not_fit_together() -> None:
    refused(changed("direct", '{ value = [1, 2], source = "x" }'), r"\[link\] direct: expected 4 bandwidths, .*, got 2")
    refused(
        changed("peak_share", '{ value = 1.2, source = "x" }'),
        r"\[managed\] peak_share: expected a share of at most 1, got 1\.2",
    )
    refused(
        changed("page_bytes", '{ value = 5000, source = "x" }'),
        r"expected powers of two in this order, got 32, 128, 5000",
    )
    refused(changed("first_bytes", '{ value = 2048, source = "x" }'), r"expected powers of two in this order")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("back_bandwidth", "1" + 320 * "0", r"back_bandwidth: value: expected a number from 1e-18 to 1e18"),
        ("launch_seconds", "1e300", r"launch_seconds: value: expected a number from 1e-18 to 1e18"),
        ("push_share", "5e-324", r"push_share: value: expected a number from 1e-18 to 1e18"),
        ("cores", "1" + 400 * "0", r"cores: value: expected a whole number from 1 to 1e18"),
        ("cores", "1000000000000", r"\[host\] cores: expected at most 65,536, got 1,000,000,000,000"),
        ("request_bytes", "4096", r"\[link\] request_bytes: expected at most 2,048, got 4,096"),
        ("direct", "[4e9, 3e9, 2e9, 1e9]", r"\[link\] direct: expected ascending bandwidths up to about 1\.23e\+10"),
        ("direct", "[1e9, 1e10, 1e12, 1e15]", r"\[link\] direct: expected ascending bandwidths up to about 1\.23e\+10"),
        ("block_bytes", str(1 << 40), r"\[managed\] block_bytes: expected at most 1,073,741,824, got"),
    ],
)
def test_figures_that_no_device_has(key: str, value: str, message: str) -> None:
    refused(changed(key, f'{{ value = {value}, source = "x" }}'), message)


def test_pages_of_a_few_bytes() -> None:
    small = WHOLE
    for key in ("sector_bytes", "request_bytes", "page_bytes", "first_bytes", "block_bytes"):
        small = changed(key, '{ value = 1, source = "x" }', small)
    refused(
        changed("direct", '{ value = [1e9], source = "x" }', small),
        r"\[managed\] page_bytes: expected at least 512, got 1",
    )


def test_whole_numbers_may_stand_for_seconds_and_rates() -> None:
    device: GpuFigures = parse(changed("back_bandwidth", '{ value = 9000000000, source = "x" }'), "mine.toml")
    assert device.link.back_bandwidth == 9e9 and isinstance(device.link.back_bandwidth, float)


def test_what_the_manual_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manual = (Path(__file__).parents[3] / "docs" / "model.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(toml|python)\n(.*?)```", manual, re.DOTALL))
    device = parse(blocks["toml"], "mine.toml")
    assert (device.name, device.link.bandwidth, device.host.cores) == ("A100 behind a riser", 21.4e9, 16)
    exec(blocks["python"], {})
    printed = capsys.readouterr().out
    assert printed.startswith("12300000000.0 HyTGraph ICDE 2023")
    assert float(re.findall(r"([\d.]+) modelled ms", printed)[0]) == pytest.approx(7.47, abs=0.01)
    assert all(f"`{name}`" in manual for name in NAMES)
