"""How Sphinx makes the site: `make docs` builds it into site/.

The source is the repository as it is: README.md is the front page, and links between Markdown files lead to the same
pages on the site and in the repository. The reference is written to docs/reference/ first (docs/builder/reference.py
and shell.py); it is not in the repository.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.builder import navigation, reference, shell  # noqa: E402

import isthmus  # noqa: E402

project, author, version = "Isthmus", "the Isthmus authors", isthmus.__version__
project_copyright = "the Isthmus authors, Apache-2.0"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/guide/*.md",
    "docs/reference/*.md",
]
exclude_patterns = [".*", "site", "src", "tests", "benchmarks", "examples"]
myst_enable_extensions = ["fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
maximum_signature_line_length = 90
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"
add_module_names = False
highlight_language = "text"

html_theme = "furo"
html_title = f"Isthmus {version}"
html_static_path, html_css_files = ["static"], ["site.css"]
html_show_sourcelink = html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse to pages that are opened as files
html_use_index, html_domain_indices = True, False


def write_reference(app: Any) -> None:
    """Write the pages of the reference, if they are not the same already."""
    folder = ROOT / "docs" / "reference"
    folder.mkdir(exist_ok=True)
    for name, text in {**reference.pages(), "shell": shell.page()}.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def add_navigation(app: Any, name: str, source: list[str]) -> None:
    """Put the groups of pages below the front page."""
    if name == root_doc:
        source[0] += "\n" + navigation.toctrees()


def add_index(app: Any, error: Exception | None) -> None:
    """The front page also under the name that browsers and servers look for."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_reference)
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_index)
