"""HTML pages: the API reference, and explanations of problem codes and warnings.

The pages have no scripts and load no external resources, so they work on isolated networks and
under the strictest content security policy.
"""

from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any

import msgspec

from service.api.http.problems import PROBLEMS, ProblemKind
from service.model.core.field_warnings import WARNINGS, WarningKind

Document = dict[str, Any]

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow:auto;padding:.6rem;background:#8881}
details{border:1px solid #8884;border-radius:.4rem;margin:.4rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse}td,th{border-bottom:1px solid #8884;padding:.2rem .8rem .2rem 0;
text-align:left;vertical-align:top}
"""


def docs_page(document: Document) -> str:
    """Return a page with the whole API: operations by tag, then schemas."""
    return _page("Moorage API", "".join(_docs(document)))


@cache
def problem_page(code: str) -> str:
    """Return a page that explains a problem code, or raise KeyError if the code is unknown."""
    kind = PROBLEMS[code]
    body = (
        f"<h1>{escape(kind.title)}</h1><p><code>{escape(code)}</code>, status {kind.status}</p>"
        f"<p>{_text(kind.meaning)}</p><p><a href='/errors'>All codes</a></p>"
    )
    return _page(code, body)


@cache
def problems_page() -> str:
    """Return a page with all problem codes in one table."""
    rows = "".join(_problem_row(code, kind) for code, kind in PROBLEMS.items())
    head = "<tr><th>Status</th><th>Code</th><th>What it means</th></tr>"
    return _page("Problems", f"<h1>Problems</h1><table>{head}{rows}</table>")


@cache
def warning_page(code: str) -> str:
    """Return a page that explains a warning, or raise KeyError if its code is unknown."""
    kind = WARNINGS[code]
    body = (
        f"<h1>{escape(code)}</h1><p>The field {escape(kind.message)}.</p>"
        f"<p>{_text(kind.meaning)}</p><p><a href='/warnings'>All codes</a></p>"
    )
    return _page(code, body)


@cache
def warnings_page() -> str:
    """Return a page with all warnings in one table."""
    rows = "".join(_warning_row(code, kind) for code, kind in WARNINGS.items())
    head = "<tr><th>Code</th><th>The field …</th></tr>"
    return _page("Warnings", f"<h1>Warnings</h1><table>{head}{rows}</table>")


def _warning_row(code: str, kind: WarningKind) -> str:
    link = f"<a href='/warnings/{code}'><code>{code}</code></a>"
    return f"<tr><td>{link}</td><td>{escape(kind.message)}</td></tr>"


def _problem_row(code: str, kind: ProblemKind) -> str:
    link = f"<a href='/errors/{code}'><code>{code}</code></a>"
    return f"<tr><td>{kind.status}</td><td>{link}</td><td>{escape(kind.title)}</td></tr>"


def _page(title: str, body: str) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _docs(document: Document) -> Iterator[str]:
    info = document["info"]
    yield f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
    yield f"<p>{_text(info['description'])}</p>"
    yield "<p><a href='/openapi.json'>OpenAPI document</a> · <a href='/errors'>Problems</a>"
    yield " · <a href='/warnings'>Warnings</a></p>"
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2><p>{_text(tag['description'])}</p>"
        yield from _operations(document, tag["name"])
    yield "<h2>Schemas</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield _schema(name, schema)


def _operations(document: Document, tag: str) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield _operation(path, method, operation)


def _operation(path: str, method: str, operation: Document) -> str:
    parts = [f"<p>{_text(operation.get('description', ''))}</p>"]
    parts += [_parameters(operation["parameters"])] if "parameters" in operation else []
    if "requestBody" in operation:
        parts.append(f"<h4>Request</h4>{_body(operation['requestBody'])}")
    for status, answer in operation["responses"].items():
        parts.append(f"<h4>{status}</h4>{_body(answer)}")
    head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> — {escape(operation['summary'])}"
    name = operation["operationId"]
    return f"<details id='{name}'><summary>{head}</summary>{''.join(parts)}</details>"


def _parameters(parameters: list[Document]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(p['name'])}</code></td><td>{p['in']}</td>"
        f"<td>{_text(p['description'])}</td></tr>"
        for p in parameters
    )
    return f"<table>{rows}</table>"


def _body(body: Document) -> str:
    shown = [f"<p>{_text(body['description'])}</p>"]
    for media_type, content in body.get("content", {}).items():
        shown.append(f"<p><code>{media_type}</code> {_type(content['schema'])}</p>")
        if "example" in content:
            shown.append(f"<pre>{escape(_json(content['example']))}</pre>")
        for name, example in content.get("examples", {}).items():
            if "value" in example:
                shown.append(f"<p>{escape(name)}:</p><pre>{escape(_json(example['value']))}</pre>")
    return "".join(shown)


def _schema(name: str, schema: Document) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{'' if field in required else '?'}</td>"
        f"<td>{_type(part)}</td><td>{_text(part.get('description', ''))}</td></tr>"
        for field, part in schema.get("properties", {}).items()
    )
    text = _text(schema.get("description", ""))
    return (
        f"<details id='schema-{name}'><summary>{name}</summary>"
        f"<p>{text}</p><table>{rows}</table></details>"
    )


def _type(schema: Document) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"<a href='#schema-{name}'>{name}</a>"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"map to {_type(values)}"
    return escape(str(schema.get("type", "any")))


def _text(text: str) -> str:
    """Return the text as HTML: escaped, with text between backticks marked as code."""
    parts = escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts)
    )


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
