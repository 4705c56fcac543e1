"""Options shared by all client commands: server, cluster, and output."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.output import FORMATS, Format, Output
from moorage.cli.session.client import Client
from moorage.cli.session.contexts import CONTEXT_VARIABLE, Context, complete_context, context_in_use

P = ParamSpec("P")

TIMEOUT_SECONDS = 60.0
URL_DEFAULT = "http://127.0.0.1:8080"

CLUSTER_DEFAULT = "default"

TOKEN_VARIABLE = "MOORAGE_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE_VARIABLE = "MOORAGE_TOKEN_FILE"  # noqa: S105 - as above

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="MOORAGE_URL",
        help=f"The server; else the context's, or {URL_DEFAULT}.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        "-c",
        envvar="MOORAGE_CLUSTER",
        help=f"The cluster to work on; else the context's, or {CLUSTER_DEFAULT}.",
        show_default=False,
    ),
]
ContextName = Annotated[
    str | None,
    typer.Option(
        "--context",
        envvar=CONTEXT_VARIABLE,
        help="The context to use instead of the current one (`moorage context`).",
        show_default=False,
        autocompletion=complete_context,
    ),
]


def token_or_file(token: str | None) -> str | None:
    """Return the given bearer token, or else the content of the file named by MOORAGE_TOKEN_FILE.

    Raises:
        WrongUsage: the file cannot be read, or the environment also has a token.
    """
    environment = os.environ  # noqa: TID251 - the client's own
    path = environment.get(TOKEN_FILE_VARIABLE)
    if path is None:
        return token or None
    if TOKEN_VARIABLE in environment:
        raise WrongUsage(f"Set either {TOKEN_VARIABLE} or {TOKEN_FILE_VARIABLE}, not both.")
    try:
        content = Path(path).read_text("utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{TOKEN_FILE_VARIABLE}: {path} cannot be read: {reason}."
        raise WrongUsage(message) from None
    return token or content


Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar=TOKEN_VARIABLE,
        help="Bearer token. Every user of a machine can see its command lines: better MOORAGE_TOKEN, or a file named in MOORAGE_TOKEN_FILE.",
        show_default=False,
        callback=token_or_file,
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for one answer.")]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Have it decided and answered as usual, but change nothing."),
]
Files = Annotated[
    list[str],
    typer.Option("--file", "-f", help="File, folder or - (YAML, JSON, JSON Lines, also .gz)."),
]
PodNamespace = Annotated[str | None, typer.Option("--namespace", "-n", help="The pod's namespace.")]
AllNamespaces = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="All namespaces, also if the context names one."),
]

OneNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Only this namespace; lists are of all without it, names of default.",
    ),
]

LabelSelector = Annotated[
    str | None, typer.Option("--selector", "-l", help="Label selector, such as app=web,tier!=db.")
]
OutputFormat = Annotated[
    str, typer.Option("--output", "-o", metavar="FORMAT", help=f"One of {FORMATS}.")
]

_SHARED = {
    "url": (Url, None),
    "cluster": (Cluster, None),
    "context": (ContextName, None),
    "token": (Token, None),
    "timeout": (Timeout, TIMEOUT_SECONDS),
    "output": (OutputFormat, Format.TABLE.value),
}


class Session:
    """The client and output of one command, made from the shared options."""

    def __init__(self, client: Client, output: Output, namespace: str | None = None) -> None:
        self.client = client
        self.output = output
        self.namespace = namespace
        """The default namespace; if None, the command decides."""
        self.suffix = ""
        """Text appended to sentences about completed actions."""

    def trying(self, dry_run: bool) -> "Session":  # noqa: FBT001 - an option's value
        """Return this session, or for a dry run, one whose writes change nothing and say so."""
        if not dry_run:
            return self
        dry = Session(self.client.trying(), self.output, self.namespace)
        dry.suffix = " (dry run)"
        return dry

    def done(self, answer: Any, sentence: str, *, wraps: bool = False) -> None:
        """Print a sentence about the action for people, or the server's answer for programs."""
        if self.output.for_people:
            show = self.output.prose if wraps else self.output.line
            show(sentence + self.suffix)
        else:
            self.output.document(answer)


def open_session(
    *,
    url: str | None,
    cluster: str | None,
    context: str | None,
    token: str | None,
    timeout: float = TIMEOUT_SECONDS,
    output: str,
) -> Session:
    """Create the session described by the shared options, with a context's values as defaults.

    Raises:
        WrongUsage: an option, the context or its token's file cannot be used.
    """
    printed = Output.in_format(output)
    used = context_in_use(context)
    client = Client(
        url or used.url or URL_DEFAULT,
        cluster=cluster or used.cluster or CLUSTER_DEFAULT,
        token=token or _token_of(used, url),
        timeout_seconds=timeout,
        warn=printed.warning,
    )
    return Session(client, printed, used.namespace)


def _token_of(context: Context, url: str | None) -> str | None:
    """Read the token of a context, which is sent only to the context's own server."""
    if context.token_file is None or url not in {None, context.url}:
        return None
    try:
        return Path(context.token_file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{context.token_file}: {error}") from None


def connected(command: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
    """Wrap a command to accept the shared options and receive a `Session` made from them.

    Typer reads a command's options from its signature, so the shared options are appended to the
    signature, except for those that the command defines itself.
    """

    def run(**given: Any) -> None:
        shared = {name: given.pop(name) for name in inherited}
        session = open_session(**shared)
        with session.client:
            command(session, **given)  # type: ignore[call-arg]

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    inherited = {
        name: option
        for name, option in _SHARED.items()
        if name not in {parameter.name for parameter in own}
    }
    shared = [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in inherited.items()
    ]
    parameters = [*(parameter.replace(kind=keyword) for parameter in own), *shared]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
