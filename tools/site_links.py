"""Follows the links of a finished site of HTML files, as a browser would, without a server."""

from collections.abc import Iterator
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

START = "index.html"


class _Page(HTMLParser):
    """Notes what a page is called by and what it leads to or loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


def broken_links(site: Path) -> list[str]:
    """Return what is wrong with the links of a site, one line each.

    Each link leads to a file and a section that are there, nothing is loaded from elsewhere, and
    every page is reached from the first one.
    """
    pages = {path.relative_to(site).as_posix(): _read(path) for path in site.rglob("*.html")}
    problems = [line for name in sorted(pages) for line in _wrong(site, pages, name)]
    unreached = sorted(set(pages) - _reached(pages))
    return problems + [f"{name}: no page leads here" for name in unreached]


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _wrong(site: Path, pages: dict[str, _Page], name: str) -> Iterator[str]:
    for load in pages[name].loads:
        if urlsplit(load).netloc:
            yield f"{name}: {load} is loaded from elsewhere"
    for link in [*pages[name].links, *pages[name].loads]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or parts.path.startswith("/"):
            continue
        file = _target(name, parts.path)
        if file not in pages and not (site / file).is_file():
            yield f"{name}: {link} leads to no file"
        elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
            yield f"{name}: {link} leads to no section"


def _target(name: str, path: str) -> str:
    """The file that a relative link on a page means."""
    return normpath(Path(name).parent / unquote(path)) if path else name


def _reached(pages: dict[str, _Page]) -> set[str]:
    """The pages to which links lead from the first one."""
    reached: set[str] = set()
    ahead = [START] if START in pages else []
    while ahead:
        name = ahead.pop()
        if name not in reached and name in pages:
            reached.add(name)
            ahead += [_target(name, urlsplit(link).path) for link in pages[name].links]
    return reached
