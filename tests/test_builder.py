"""The documentation's site: the reference has every public name, and dead links are found (`docs/builder/`)."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from docs.builder import links, navigation, pages, reference, shell, signatures
from docs.builder.source_comments import fields_of

import isthmus as ist
from isthmus.graph.formats import ReadOptions
from isthmus.runtime.options import VISIBLE, SessionOptions

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return reference.pages()


def test_every_public_name_is_described_on_one_page() -> None:
    found = [name for page in pages.PAGES for name in reference.described(page)]
    assert sorted(found) == sorted(reference.public_names())


def test_every_public_name_appears_with_its_words(texts: dict[str, str]) -> None:
    everything = "\n".join(texts.values())
    for name in reference.public_names() - {"Vertex"}:
        assert re.search(rf"\{{py:\w+\}} isthmus\.{name}\b", everything), name
        doc = inspect.getdoc(getattr(ist, name))
        assert doc and len(doc.split()) >= 3, name
        assert doc.splitlines()[0] in everything, name


def test_members_have_docstrings_and_those_left_out_exist() -> None:
    classes = [
        reference.of_path(path)
        for page in pages.PAGES.values()
        for section in page.sections
        for path in section.classes
    ]
    classes += [ist.Graph, ist.Session, ist.Program, ist.State, ist.Functions, ist.Column, ist.Answer]
    for cls in classes:
        for name, value in reference.members(cls):
            assert inspect.getdoc(value), f"{cls.__name__}.{name}"
        for name in pages.INTERNAL.get(cls.__name__, ()):
            assert hasattr(cls, name) or name in inspect.get_annotations(cls), f"{cls.__name__}.{name}"


def test_an_algorithm_has_its_options_with_their_help(texts: dict[str, str]) -> None:
    head = "{py:function} isthmus.bfs(graph: Graph, source, depth_limit=None, predecessors=False, **options) -> Result"
    assert head in texts["algorithms"]
    assert ":param alpha: Damping: the chance of following an edge." in texts["algorithms"]


def test_fields_are_explained_by_their_help_or_their_comments() -> None:
    assert fields_of(SessionOptions)["policy"] == ("str", "How edges are brought into near memory.")
    assert fields_of(ReadOptions)["comments"] == ("str", "characters that start a comment line")


def test_every_option_of_a_run_is_in_the_reference(texts: dict[str, str]) -> None:
    everything = "\n".join(texts.values())
    assert all(f"| `{name}` |" in everything for name in VISIBLE)


def test_a_signature_shows_what_a_caller_can_give() -> None:
    def example(a: int, /, b: str = "x", *, c: object = example_default, **options: str) -> str: ...

    assert signatures.signature_of(example) == "(a: int, /, b: str = 'x', *, c: object = ..., **options) -> str"


example_default = object()


def test_commands_are_described_from_their_help() -> None:
    text = shell.page()
    for command in (
        "ingest",
        "run",
        "run bfs",
        "compare",
        "plan",
        "path",
        "stream",
        "calibrate",
        "export",
        "verify",
        "info",
    ):
        assert f"\n## isthmus {command}\n" in text
    assert "hytgraph (by its cost formulas" in text and "{recipes}" not in text
    assert "| `--memory <str>` | Near memory: 2GB, or 10% for vertex state" in text


def test_every_page_of_the_repository_is_in_the_navigation() -> None:
    found = {
        str(path.relative_to(ROOT).with_suffix(""))
        for folder in ("docs", "docs/guide")
        for path in (ROOT / folder).glob("*.md")
    }
    listed = [page for group in navigation.GROUPS.values() for page in group]
    assert found | {"CONTRIBUTING", "CHANGELOG"} == {page for page in listed if not page.startswith("docs/reference/")}
    assert len(listed) == len(set(listed))
    assert {page.split("/")[-1] for page in listed if page.startswith("docs/reference/")} == {*pages.PAGES, "shell"}


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<a href="other.html">', ""),
        ('<a href="other.html#there">', ""),
        ('<a href="https://example.org/">', ""),
        ('<a href="other.html#nowhere">', "page.html: other.html#nowhere leads to no such place in its page"),
        ('<a href="missing.html">', "page.html: missing.html leads to no file"),
        ('<a href="#here">', "page.html: #here leads to no such place in its page"),
        (
            '<script src="https://example.org/x.js"></script>',
            "page.html: loads https://example.org/x.js from elsewhere",
        ),
        (
            '<link rel="stylesheet" href="//fonts.example.org/x.css">',
            "page.html: loads //fonts.example.org/x.css from elsewhere",
        ),
        ('<img src="missing.png">', "page.html: missing.png leads to no file"),
    ],
)
def test_dead_links_and_files_from_elsewhere_are_found(page: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page)
    (tmp_path / "other.html").write_text('<p id="there">')
    assert links.problems(tmp_path) == ([problem] if problem else [])


def test_a_site_without_pages_is_a_problem(tmp_path: Path) -> None:
    assert links.problems(tmp_path)
