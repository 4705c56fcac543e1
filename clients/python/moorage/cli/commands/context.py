"""`moorage context`: manage named servers, clusters, and namespaces."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from moorage.cli.render.output import Output
from moorage.cli.session.contexts import (
    Context,
    Contexts,
    complete_context,
    context_in_use,
    read_contexts,
    write_contexts,
)

context = typer.Typer(
    help="Contexts: a server, cluster and namespace under a name.",
    no_args_is_help=True,
    add_completion=False,
)


Name = Annotated[str, typer.Argument(help="The context's name.", autocompletion=complete_context)]


@context.command("set")
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
    write_contexts(Contexts(current=known.current or name, contexts=contexts))
    sys.stdout.write(f"context {name} is set\n")


@context.command("use")
def use_context(*, name: Name) -> None:
    """Let commands go to a context from now on."""
    context_in_use(name)
    write_contexts(msgspec.structs.replace(read_contexts(), current=name))
    sys.stdout.write(f"context {name} is in use\n")


@context.command("delete")
def delete_context(*, name: Name) -> None:
    """Forget a context."""
    context_in_use(name)
    known = read_contexts()
    rest = {other: entry for other, entry in known.contexts.items() if other != name}
    current = None if known.current == name else known.current
    write_contexts(Contexts(current=current, contexts=rest))
    sys.stdout.write(f"context {name} is deleted\n")


@context.command("list")
def list_contexts() -> None:
    """Show all contexts; a star marks the one in use."""
    known = read_contexts()
    Output().table(
        ("current", "name", "url", "cluster", "namespace", "token file"),
        (
            (
                "*" if name == known.current else None,
                name,
                entry.url,
                entry.cluster,
                entry.namespace,
                entry.token_file,
            )
            for name, entry in known.contexts.items()
        ),
    )
