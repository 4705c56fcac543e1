"""Pages of the documentation that are made from the code: `python -m tools.reference_pages` writes them.

`docs/cluster-configuration.md` has the settings of clusters, `docs/problems.md` the codes of errors
and warnings, and `docs/commands.md` all commands with their options.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import typer

from moorage.cli.command_table import load_command
from moorage.cli.main import app
from service.api.http.problems import PROBLEMS
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.field_warnings import WARNINGS
from tools.field_docstrings import field_docstrings

DOCS = Path(__file__).parents[1] / "docs"

_WRITTEN = "`python -m tools.reference_pages` writes this page"
_CONFIGURATION = f"""\
# Cluster configuration

These are the settings of one cluster. They are read with `GET /v1/clusters/{{cluster}}` and changed
with PUT or PATCH, or with `moorage config`. {_WRITTEN}
from the code.

This reads all settings, changes one, and restores its default:

**HTTP**

```sh
cluster=localhost:8080/v1/clusters/default
curl -s "$cluster"
curl -s -X PATCH "$cluster" -H 'Content-Type: application/merge-patch+json' \\
  -d '{{"config": {{"evictionsPerMinute": 30}}}}'
curl -s -X PATCH "$cluster" -H 'Content-Type: application/merge-patch+json' \\
  -d '{{"config": {{"evictionsPerMinute": null}}}}'
```

**Command**

```sh
moorage config
moorage config evictionsPerMinute=30
moorage config evictionsPerMinute=null
```

**Python**

```python
from moorage import Client

with Client("http://localhost:8080") as moorage:
    print(moorage.get_cluster()["config"])
    print(moorage.configure(evictionsPerMinute=30)["config"]["evictionsPerMinute"])
    print(moorage.configure(evictionsPerMinute=None)["config"]["evictionsPerMinute"])
```

| setting | default | meaning |
|---|---|---|
"""
_PROBLEMS = f"""\
# Problems and warnings

{_WRITTEN} from the code.

An answer that is no success is a problem document (RFC 9457). Its `code` says what kind of problem
it is, and does not change; `type` leads to the same text on the server (`/errors/CODE`). [When
something goes wrong](api-guide.md#when-something-goes-wrong) says what a client does about it.

## Problems

"""
_WARNINGS = """\
## Warnings

A field that means something to scheduling in Kubernetes and nothing here is passed over, and the
answer says so in `warnings` ([when a field is not read](api-guide.md#when-a-field-is-not-read)).

"""
_COMMANDS = f"""\
# All commands

{_WRITTEN} from the command itself, which
says the same with `--help`. [The table of all commands](../README.md#the-command) has them at a
glance.

## Options of all clients

These say which server a command asks, and how it prints the answer. All commands take them that ask
a server.

"""
COLUMNS_MAX = 100
SHARED = ("--url", "--cluster", "--context", "--token", "--timeout", "--output")
"""The options that are told once."""


def cluster_configuration() -> str:
    """The page of the settings of clusters."""
    meanings = field_docstrings(ClusterConfig)
    rows = (
        f"| `{each.encode_name}` | {_default(each)} | {_cell(_with_values(meanings[each.name], each.type))} |"
        for each in msgspec.structs.fields(ClusterConfig)
    )
    return _CONFIGURATION + "\n".join(rows) + "\n"


def _default(field: msgspec.structs.FieldInfo) -> str:
    factory = field.default_factory
    value = factory() if factory is not msgspec.NODEFAULT else field.default
    told = msgspec.json.encode(value).decode()
    return "" if told in {"null", "[]", "{}"} else f"`{told}`"


def _with_values(meaning: str, annotation: Any) -> str:
    options = get_args(annotation) if get_origin(annotation) is Literal else ()
    return meaning + (f" One of {', '.join(f'`{each}`' for each in options)}." if options else "")


def problems() -> str:
    """The page of the codes of problems and warnings."""
    problems = (
        f"### {code}\n\n{kind.status}: {kind.title}. {kind.meaning}\n"
        for code, kind in PROBLEMS.items()
    )
    warnings = (
        f"### {code}\n\nThe field {kind.message}.\n\n{kind.meaning}\n"
        for code, kind in WARNINGS.items()
    )
    parts = [_PROBLEMS, "\n".join(problems), "\n", _WARNINGS, "\n".join(warnings)]
    return _wrapped("".join(parts))


def commands() -> str:
    """The page of all commands."""
    group: Any = typer.main.get_command(app)
    shared = [each for each in load_command("get").params if each.opts[0] in SHARED]
    described = "\n".join(_described(group, ("moorage",)))
    return f"{_COMMANDS}{_table(shared)}\n{described}"


def _described(group: Any, above: tuple[str, ...]) -> Iterator[str]:
    """Describe the commands of a group, which are Typer's own kind of Click's commands."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        words, command = (*above, name), group.get_command(context, name)
        if hasattr(command, "commands"):
            yield from _described(command, words)
        else:
            yield f"## {' '.join(words)}\n\n{_wrapped(_help(command))}\n{_parameters(command)}"


def _help(command: Any) -> str:
    """What a command says of itself, without the part for programmers."""
    text = (command.help or "").partition("\f")[0].strip()
    return f"{text}\n"


def _parameters(command: Any) -> str:
    own = [each for each in command.params if each.opts[0] not in SHARED and not each.hidden]
    asks = len(own) < len(command.params)
    more = "It also takes [the options of all clients](#options-of-all-clients).\n"
    return "\n".join([*([_table(own)] if own else []), *([more] if asks else [])])


def _table(parameters: Sequence[Any]) -> str:
    rows = (f"| {_names(each)} | {_cell(each.help or '')} |" for each in parameters)
    return "\n".join(["| option | meaning |", "|---|---|", *rows, ""])


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{each}`" for each in [*parameter.opts, *parameter.secondary_opts])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _wrapped(text: str) -> str:
    """Break the lines of paragraphs at 100 columns, between words that are not code."""
    return "\n".join(_paragraph(each) for each in text.split("\n"))


def _paragraph(line: str) -> str:
    lines, present = [], ""
    for word in _words(line):
        if present and len(f"{present} {word}") > COLUMNS_MAX:
            lines.append(present)
            present = word
        else:
            present = f"{present} {word}" if present else word
    return "\n".join([*lines, present])


def _words(line: str) -> Iterator[str]:
    """The words of a line; code between backticks is one word with what touches it."""
    pending = ""
    for part in line.split(" "):
        pending = f"{pending} {part}" if pending else part
        if pending.count("`") % 2 == 0:
            yield pending
            pending = ""
    if pending:
        yield pending


PAGES = {
    "cluster-configuration.md": cluster_configuration,
    "problems.md": problems,
    "commands.md": commands,
}
"""The pages by their names in `docs/`, and what makes them."""


def main() -> None:
    """Write the pages."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
