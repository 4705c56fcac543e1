r"""kubectl's JSONPath templates (`-o jsonpath=…`), and paths to single fields of objects.

A template is text with paths in braces: `{.metadata.name}{"\n"}`, and `{range .items[*]}…{end}`,
which is repeated for each value. The paths themselves are those of RFC 9535, evaluated by a
library. In addition, a path need not begin with `$`, names may contain any character that does not
continue a path, and a backslash escapes a dot: `.metadata.labels.app\.io/name`. Unlike in kubectl,
lists of paths in one bracket, such as `['metadata.name', 'kind']`, are not supported.

Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from moorage.cli.exceptions import WrongUsage

Path = Callable[[object], list[Any]]
"""Returns the values at a path in a document, or an empty list if the path matches nothing."""

Render = Callable[[object], str]

_QUOTED = r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'"
_PIECE = re.compile(rf"(?P<text>[^{{}}]+)|\{{(?P<block>(?:{_QUOTED}|[^{{}}\"'])*)\}}")
_STEP = re.compile(
    rf"(?P<deep>\.\.)|\.?(?P<bracket>\[(?:{_QUOTED}|[^\[\]\"']|\[[^\]]*\])*\])"
    r"|\.?(?P<name>(?:\\.|[^.\[\]\\\s])+)|(?P<self>\.$)"
)


class Template:
    """A parsed template, ready to be filled from documents."""

    def __init__(self, text: str) -> None:
        """Parse a template; one without braces is a single path.

        Raises:
            WrongUsage: the template is invalid.
        """
        pieces = _pieces(text if "{" in text else f"{{{text}}}")
        self._parts = _parts(text, pieces, within_range=False)

    def fill(self, document: object) -> str:
        """Return the filled text; paths that match nothing leave nothing."""
        return "".join(part(document) for part in self._parts)


def read_path(text: str) -> Path:
    """Parse a field path in kubectl's column notation: `.a.b`, `a.b`, or `{.a.b}`.

    Raises:
        WrongUsage: the path is invalid.
    """
    import jsonpath  # noqa: PLC0415 - it takes a tenth of a command's start, and few ask for it

    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        stripped = stripped[1:-1].strip()
    try:
        compiled = jsonpath.compile(_standard(stripped))
    except jsonpath.JSONPathError as error:
        raise WrongUsage(f"{text} is no JSONPath: {error}") from None

    def found(document: object) -> list[Any]:
        # The library accepts only documents: a single value has no fields to search.
        if isinstance(document, (dict, list)):
            return compiled.findall(document)
        return [document] if stripped in {"", ".", "@", "$"} else []

    return found


def shown(value: object) -> str:
    """Format one value like kubectl: text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _pieces(text: str) -> list[tuple[str, str]]:
    """Split a template into text and blocks, in reverse order."""
    pieces, at = [], 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            raise WrongUsage(f"{text} is no template: a brace or a quote is not closed.")
        kind = str(match.lastgroup)
        pieces.append((kind, match[kind]))
        at = match.end()
    return pieces[::-1]


def _parts(text: str, pieces: list[tuple[str, str]], *, within_range: bool) -> Sequence[Render]:
    """Consume pieces from the end of the list up to `{end}`, converting each to a renderer."""
    parts: list[Render] = []
    while pieces:
        kind, piece = pieces.pop()
        block = piece.strip()
        if kind == "text":
            parts.append(_constant(piece))
        elif block == "end":
            if within_range:
                return parts
            raise WrongUsage(f"{text} is no template: `end` without `range`.")
        elif re.match(r"range\b", block):
            body = _parts(text, pieces, within_range=True)
            parts.append(_range(read_path(block.removeprefix("range")), body))
        elif block[:1] in {'"', "'"}:
            parts.append(_constant(_literal(block)))
        else:
            parts.append(_values(read_path(block)))
    if within_range:
        raise WrongUsage(f"{text} is no template: `range` without `end`.")
    return parts


def _constant(text: str) -> Render:
    return lambda _: text


def _values(path: Path) -> Render:
    return lambda document: " ".join(shown(value) for value in path(document))


def _range(path: Path, body: Sequence[Render]) -> Render:
    return lambda document: "".join(part(value) for value in path(document) for part in body)


def _literal(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        raise WrongUsage(f"{text} is no quoted text.") from None


def _standard(path: str) -> str:
    """Rewrite a path in RFC 9535 notation, with each name in brackets."""
    steps, at = ["$"], 1 if path[:1] in {"$", "@"} else 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise WrongUsage(f"{path} is no JSONPath: what is {path[at:]}?")
        steps.append(_step(match))
        at = match.end()
    return "".join(steps)


def _step(match: re.Match[str]) -> str:
    name = match["name"]
    if name == "*":
        return "[*]"
    if name is not None:
        plain = re.sub(r"\\(.)", r"\1", name)
        return f"[{msgspec.json.encode(plain).decode()}]"
    return match["deep"] or match["bracket"] or ""
