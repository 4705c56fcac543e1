"""The reference of the HTTP API as pages of the documentation: one for each tag of the OpenAPI document.

An operation has its words, parameters, body and answers as text, so that it is there at once, is
found by the search and is read by everybody. Beside it is what `docs/assets/try.js` makes a form of.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.json"
START = "api/index.md"
METHODS = ("get", "put", "post", "patch", "delete")

Json = dict[str, Any]


def api_pages(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path in the site and the text of each page; the first one lists the others."""
    tagged: dict[str, list[tuple[str, str, Json]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                operations = tagged.setdefault(item[method]["tags"][0], [])
                operations.append((method.upper(), path, item[method]))
    described = {tag["name"]: tag.get("description") for tag in document["tags"]}
    told = {tag: described.get(tag) or f"Operations on {tag}." for tag in tagged}
    yield START, _index(told, tagged)
    for tag, operations in tagged.items():
        parts = (_operation(document, *each) for each in operations)
        yield f"api/{tag}.md", f"# {tag}\n\n{told[tag]}\n\n" + "\n".join(parts)


def load() -> Json:
    """Return the OpenAPI document as the repository has it."""
    document: Json = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return document


def _index(told: Mapping[str, str], tagged: Mapping[str, list[tuple[str, str, Json]]]) -> str:
    lines = [
        "# API reference",
        "",
        "All operations of the HTTP API, by what they are about. On a server, each of them can be",
        "tried where it is described: the request goes to the server that shows the page, with the",
        "token that you enter or have entered on its [page](../page.md). [The API",
        "guide](../api-guide.md) tells how they belong together; the whole contract is the OpenAPI",
        "document at `/openapi.json`.",
    ]
    for tag, operations in tagged.items():
        lines += ["", f"## {tag}", "", told[tag], ""]
        lines += [
            f"- [`{method} {path}`]({tag}.md#{each['operationId']}): {each['summary']}"
            for method, path, each in operations
        ]
    return "\n".join(lines) + "\n"


def _operation(document: Mapping[str, Any], method: str, path: str, operation: Json) -> str:
    parameters = [_resolved(document, each) for each in operation.get("parameters", ())]
    body = _resolved(document, operation.get("requestBody", {})).get("content", {})
    examples = {media: _examples(kind) for media, kind in body.items()}
    parts = [
        f"## {operation['summary']} {{ #{operation['operationId']} }}",
        f"```http\n{method} {path}\n```",
        _text(operation.get("description", "")),
        _parameters(parameters),
        _body(document, body, examples),
        _try(method, path, parameters, {media: each[0] for media, each in examples.items()}),
        _answers(document, operation["responses"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parameters(parameters: list[Json]) -> str:
    rows = [
        f"| `{each['name']}` | {each['in']}{', required' if each.get('required') else ''} "
        f"| {_cell(each.get('description', ''))} |"
        for each in parameters
    ]
    return "\n".join(["| parameter | where | meaning |", "|---|---|---|", *rows]) if rows else ""


def _body(document: Mapping[str, Any], body: Json, examples: Mapping[str, list[str]]) -> str:
    if not body:
        return ""
    media = next(iter(body))
    named = ", ".join(f"`{each}`" for each in body)
    first, *others = (f"```json\n{each}\n```" for each in examples[media])
    shown = "\n\nor:\n\n".join([f"The body is {named}, such as:\n\n{first}", *others])
    fields = _resolved(document, body[media].get("schema", {})).get("properties", {})
    rows = [
        f"| `{name}` | {_cell(_resolved(document, each).get('description', ''))} |"
        for name, each in fields.items()
    ]
    table = "\n".join(["| field | meaning |", "|---|---|", *rows])
    return f"{shown}\n\n{table}" if rows else shown


def _answers(document: Mapping[str, Any], responses: Json) -> str:
    rows = [
        f"| {status} | {_cell(_resolved(document, each).get('description', ''))} |"
        for status, each in responses.items()
    ]
    return "\n".join(["| status | answer |", "|---|---|", *rows])


def _try(method: str, path: str, parameters: list[Json], examples: Mapping[str, str]) -> str:
    """The place of the form, with what the form needs to know."""
    fields = [
        {"name": each["name"], "in": each["in"], "required": each.get("required", False)}
        | ({"example": str(each["example"])} if each.get("required") and "example" in each else {})
        for each in parameters
        if each["in"] in {"path", "query", "header"}
    ]
    known = {"method": method, "path": path, "parameters": fields, "bodies": examples}
    return f'<div class="try" data-operation="{escape(json.dumps(known))}"></div>'


def _resolved(document: Mapping[str, Any], value: Json) -> Json:
    """What a reference into the document leads to, with the words that stand beside it."""
    if "$ref" not in value:
        return value
    found: Any = document
    for name in value["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return _resolved(document, found) | {key: each for key, each in value.items() if key != "$ref"}


def _examples(content: Json) -> list[str]:
    """Return the examples of a body in one media type, the most usual one first."""
    named = [_pretty(each["value"]) for each in content.get("examples", {}).values()]
    return named or [_pretty(content.get("example"))]


def _pretty(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2)


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


def _text(text: str) -> str:
    """Text of the document as Markdown, in which no word between angle brackets is a tag."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)
