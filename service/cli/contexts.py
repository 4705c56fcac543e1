"""`moorage context`: named servers, clusters and namespaces in a file, so that options need not be repeated."""

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

from service.cli.errors import WrongUsage
from service.cli.printing.output import Output

FILE_VARIABLE = "MOORAGE_CONTEXTS"
CONTEXT_VARIABLE = "MOORAGE_CONTEXT"
PRIVATE = 0o600


class Context(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Where commands go; what is None has its usual default."""

    url: str | None = None
    cluster: str | None = None
    namespace: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    """The file with the token: tokens themselves are not kept here."""


class Contexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All contexts of a user, and which of them is in use."""

    current: str | None = None
    contexts: dict[str, Context] = {}


def contexts_file() -> Path:
    """Return the file that MOORAGE_CONTEXTS names, or else the usual one."""
    environment = os.environ  # noqa: TID251 - the client's own
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "moorage" / "contexts.yaml"


def read_contexts() -> Contexts:
    """Read the file; if there is none, there are no contexts.

    Raises:
        WrongUsage: the file cannot be read, or is not valid.
    """
    file = contexts_file()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return msgspec.convert(content or {}, Contexts)
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise WrongUsage(f"{file}: {error}") from None


def context_in_use(name: str | None) -> Context:
    """Return the context with this name, or else the current one; empty if none is chosen.

    Raises:
        WrongUsage: there is no such context, or the file is not valid.
    """
    known = read_contexts()
    chosen = name or known.current
    if chosen is None:
        return Context()
    if chosen not in known.contexts:
        raise WrongUsage(
            f"There is no context {chosen}: `moorage context list` shows those there are."
        )
    return known.contexts[chosen]


def complete_context(incomplete: str) -> list[str]:
    """Return the contexts that begin like this, for the completion of a shell."""
    try:
        return [name for name in read_contexts().contexts if name.startswith(incomplete)]
    except WrongUsage:
        return []


def _write(contexts: Contexts) -> None:
    """Replace the file in one step, readable by its user alone."""
    file = contexts_file()
    unfinished = file.with_name(f".{file.name}.part")
    text = Output.as_yaml(msgspec.to_builtins(contexts))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.chmod(PRIVATE)
        unfinished.replace(file)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}") from None


context_commands = typer.Typer(
    help="Contexts: a server, cluster and namespace under a name.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The context's name.", autocompletion=complete_context)]


@context_commands.command("set")
def set_context(
    *,
    name: Name,
    url: Annotated[str | None, typer.Option("--url", help="The server.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", "-c", help="The cluster.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="The namespace where none is given.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option("--token-file", help="The file that holds the token.")
    ] = None,
) -> None:
    """Make a context, or change what is given of it; an empty text removes it. The first one is used at once."""
    known = read_contexts()
    given = {"url": url, "cluster": cluster, "namespace": namespace, "token_file": token_file}
    if token_file:
        given["token_file"] = str(Path(token_file).expanduser().absolute())
    changes = {field: value or None for field, value in given.items() if value is not None}
    changed = msgspec.structs.replace(known.contexts.get(name, Context()), **changes)
    contexts = {**known.contexts, name: changed}
    _write(Contexts(current=known.current or name, contexts=contexts))
    sys.stdout.write(f"context {name} is set\n")


@context_commands.command("use")
def use_context(*, name: Name) -> None:
    """Let commands go to a context from now on."""
    context_in_use(name)
    _write(msgspec.structs.replace(read_contexts(), current=name))
    sys.stdout.write(f"context {name} is in use\n")


@context_commands.command("delete")
def delete_context(*, name: Name) -> None:
    """Forget a context."""
    context_in_use(name)
    known = read_contexts()
    rest = {each: context for each, context in known.contexts.items() if each != name}
    current = None if known.current == name else known.current
    _write(Contexts(current=current, contexts=rest))
    sys.stdout.write(f"context {name} is deleted\n")


@context_commands.command("list")
def list_contexts() -> None:
    """Show all contexts; a star marks the one in use."""
    known = read_contexts()
    Output().table(
        ("current", "name", "url", "cluster", "namespace", "token file"),
        (
            (
                "*" if name == known.current else None,
                name,
                each.url,
                each.cluster,
                each.namespace,
                each.token_file,
            )
            for name, each in known.contexts.items()
        ),
    )
