"""Look for dead links in the built site, and for anything that a page would load from elsewhere: `python
docs/builder/links.py site`.

Sphinx checks the links that authors write. This checks what came out: navigation, index, search page, and the files
that pages load.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
ELSEWHERE = ("canonical", "alternate")  # links in the head that load nothing


class Page(HTMLParser):
    """The ids, the links and the loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADS and given.get(LOADS[tag]) and given.get("rel") not in ELSEWHERE:
            self.loaded.append(given[LOADS[tag]])


def problems(site: Path) -> list[str]:
    """One line for each dead link and each file from elsewhere."""
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: expected HTML pages, found none"]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: loads {address} from elsewhere" for address in page.loaded if is_elsewhere(address)]
        found += [f"{name}: {link} {why}" for link in [*page.links, *page.loaded] if (why := dead(link, path, pages))]
    for sheet in sorted(site.rglob("*.css")):
        found += [f"{sheet.relative_to(site)}: loads from elsewhere"] * (
            "url(http" in sheet.read_text() or "url(//" in sheet.read_text()
        )
    return found


def is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def dead(link: str, page: Path, pages: dict[Path, Page]) -> str:
    """What is wrong with a link within the site; nothing if it is alive, or leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return "leads to no file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "leads to no such place in its page"
    return ""


def main(site: Path) -> int:
    found = problems(site)
    print("\n".join(found) or f"{site}: all links lead somewhere, and nothing is loaded from elsewhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
