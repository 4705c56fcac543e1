"""The documentation site, from `docs/` and some pages beside it: `python -m tools.docs_site FOLDER`.

The pages are written for people who read them in the repository. What a site needs in another way is
changed in a copy: links to files that the site does not have become plain text, and pages from
elsewhere get a place in it. Zensical builds the copy, strictly; then each link of the finished site
is followed, and the folder is replaced as a whole, so that a server that runs never sees half of it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from os.path import normpath, relpath
from pathlib import Path

from tools.api_pages import api_pages, load
from tools.site_links import START, broken_links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIGURATION = "zensical.toml"
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "bench/RESULTS.md": "results.md",
    "examples/README.md": "examples.md",
}
"""Pages outside of `docs/`, by their paths from the root, and their places in the site."""
COMMAND = ("README.md", "## The command", "command.md")
"""The section of a page that is a page of the site, with its heading and its place there."""
SUPERFLUOUS = ("404.html", "sitemap.xml", "sitemap.xml.gz", CONFIGURATION)

_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)
_TAB = re.compile(
    r"^\*\*(?P<label>[^*\n]+)\*\*\n\n(?P<code>```\w+\n.*?^```\n)", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
_START = re.compile(r'(?<= href=")(?:|\.[./]*)(?=")')
"""A link that the theme means to lead to the first page: the folder of it, or nothing at all."""
_PROSE = re.compile(r"\n*(?![-#!|\s]|```)")
_NAMED = re.compile(r'"([^"]+\.md)"')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ELSEWHERE = re.compile(r"[a-z]+:|#|/")


def places() -> dict[str, str]:
    """Where the site has each page and picture: paths from the root, and paths in the site."""
    own = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*")) if path.is_file())
    return {f"docs/{path}": path for path in own} | ELSEWHERE


def prepared(page: str, source: str, place: str, known: Mapping[str, str]) -> str:
    """Return a page as the site needs it.

    Args:
        page: Its text.
        source: Its path from the root, from which its links lead.
        place: Its path in the site.
        known: Where the site has what, as `places` tells it.
    """
    parts = _FENCED.split(page)
    for number in range(0, len(parts), 2):
        prose = _COMMENT.sub("\n", parts[number])
        parts[number] = _LINK.sub(lambda link: _led(link, source, place, known), prose)
    return "".join(parts)


def tabbed(page: str) -> str:
    """Return a page with its labelled blocks of code as tabs: those that follow each other are one group."""
    return _TAB.sub(_tab, page)


def _tab(found: re.Match[str]) -> str:
    """A tab has what belongs into it further in, by four columns."""
    inner = re.sub(r"^(?=.)", "    ", found["code"], flags=re.MULTILINE)
    return f'=== "{found["label"]}"\n\n{inner}'


def leads(page: str) -> list[str]:
    """Return where the relative links of a page lead, but for sections of itself."""
    prose = "".join(_FENCED.split(page)[::2])
    targets = [link["target"] for link in _LINK.finditer(prose)]
    return [each.partition("#")[0] for each in targets if not _ELSEWHERE.match(each)]


def _led(link: re.Match[str], source: str, place: str, known: Mapping[str, str]) -> str:
    """Return a link to the same thing from the page's place in the site, or only its text.

    A link within `docs/` to nothing stays as it is, so that Zensical complains of it.
    """
    if _ELSEWHERE.match(link["target"]):
        return link[0]
    path, hash_sign, section = link["target"].partition("#")
    meant = normpath(Path(source).parent / path)
    if meant in known:
        target = relpath(known[meant], Path(place).parent)
        return f"{link['image']}[{link['text']}]({target}{hash_sign}{section})"
    if f"{meant}/README.md" in known:
        return f"[{link['text']}]({relpath(known[f'{meant}/README.md'], Path(place).parent)})"
    return link[0] if meant.startswith("docs/") else link["text"]


def section(page: str, heading: str) -> str:
    """Return a section of a page as a page of its own; raises ValueError if there is none."""
    _, found, rest = page.partition(f"\n{heading}\n")
    if not found:
        raise ValueError(heading)
    return f"#{heading.lstrip('#')}\n{re.split(r'^## ', rest, maxsplit=1, flags=re.MULTILINE)[0]}"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path in the site and the text of each page."""
    known = places() | {COMMAND[0]: COMMAND[2]}
    for source, place in places().items():
        if place.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            yield place, prepared(text, source, place, known)
    source, heading, place = COMMAND
    text = section((ROOT / source).read_text(encoding="utf-8"), heading)
    yield place, prepared(text, source, place, known)
    yield from api_pages(load())


def write_sources(folder: Path) -> None:
    """Write what Zensical builds the site from."""
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("*.md"))
    shutil.copyfile(DOCS / CONFIGURATION, folder / CONFIGURATION)
    for place, text in pages():
        target = folder / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(tabbed(text), encoding="utf-8")


def write_texts(site: Path) -> None:
    """Put the text of each page beside it, and an index of them all, as https://llmstxt.org has it."""
    told = {}
    for place, text in pages():
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        told[place] = _line_of(place, text)
    named = _NAMED.findall((DOCS / CONFIGURATION).read_text("utf-8"))
    others = [place for place in told if place not in named]
    lines = ["# Moorage", "", f"> {_described()}", "", "## Pages", ""]
    lines += [told[place] for place in named]
    lines += ["", "## Optional", "", *(told[place] for place in others)]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line_of(place: str, text: str) -> str:
    """What the index says of a page: its title, and the sentence with which it begins."""
    title, _, rest = text.partition("\n")
    paragraphs = (each for each in rest.split("\n\n") if _PROSE.match(each))
    begin = _LINK.sub(lambda link: link["text"], " ".join(next(paragraphs, "").split()))
    sentence = re.split(r"(?<=[.:?]) (?=[A-Z])", begin, maxsplit=1)[0]
    return f"- [{title.removeprefix('# ')}]({place}): {sentence}"


def _described() -> str:
    settings = tomllib.loads((DOCS / CONFIGURATION).read_text("utf-8"))
    return str(settings["project"]["site_description"])


def build(target: Path) -> None:
    """Build the site into a folder, which is replaced as a whole.

    Raises:
        SystemExit: Zensical has warnings, or a link of the site leads nowhere.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".docs-") as name:
        folder = Path(name)
        write_sources(folder)
        _run_zensical(folder)
        site = folder / "site"
        for superfluous in SUPERFLUOUS:
            (site / superfluous).unlink(missing_ok=True)
        for page in site.rglob("*.html"):
            start = relpath(site / START, page.parent)
            page.write_text(_START.sub(start, page.read_text("utf-8")), "utf-8")
        write_texts(site)
        if broken := broken_links(site):
            raise SystemExit("\n".join(broken))
        if target.exists():
            target.rename(folder / "before")
        site.rename(target)
        target.chmod(0o755)


def _run_zensical(folder: Path) -> None:
    command = (sys.executable, "-m", "zensical", "build", "--strict")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".partition("Traceback")[0]
        raise SystemExit(_COLOUR.sub("", said))


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
