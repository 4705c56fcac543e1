"""`moorage webhooks`: manage the URLs that receive a cluster's records."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from moorage.cli.exceptions import CliError, ExitCode, Refused, WrongUsage
from moorage.cli.render.rows import Clock
from moorage.cli.session.options import DryRun, Session, connected

IS_THERE = "PreconditionFailed"
COLUMNS = (
    *("name", "state", "revision", "behind", "last delivered", "failures", "next try"),
    *("url", "last error"),
)

Name = Annotated[str, typer.Argument(help="The webhook's name, such as orchestrator.")]
To = Annotated[str, typer.Option("--to", metavar="URL", help="Where messages are sent by POST.")]
NewTo = Annotated[str | None, typer.Option("--to", metavar="URL", help="Another address.")]
InNamespace = Annotated[
    str | None, typer.Option("--in", metavar="NAMESPACE", help="Only pods in this namespace.")
]
OfAll = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods in all namespaces.")]
After = Annotated[
    int | None,
    typer.Option("--after", metavar="REVISION", min=0, help="Send what followed this revision."),
]
Paused = Annotated[bool, typer.Option("--paused", help="Send nothing before `resume`.")]

webhooks = typer.Typer(
    help="Webhooks: records of a cluster, sent to those who cannot keep a stream open.",
    no_args_is_help=True,
    add_completion=False,
)


class PingFailed(CliError):  # noqa: N818 - a verdict, not a fault
    """The receiver did not acknowledge a test message."""

    exit_code = ExitCode.REFUSED


@webhooks.command("list")
@connected
def list_webhooks(session: Session) -> None:
    """Show all webhooks of the cluster: how far each is, and what went wrong last.

    REVISION is what the receiver has acknowledged, and BEHIND by how many revisions the cluster is
    further. A webhook is stopped after too many failures, or if the receiver answered 410.
    """
    answer = session.client.get(session.client.path("webhooks"))
    if not session.output.for_people:
        session.output.document(answer)
        return
    clock = Clock(datetime.now(UTC))  # noqa: TID251 - the user's own time
    session.output.table(COLUMNS, (_row(webhook, clock) for webhook in answer["items"]))


@webhooks.command("create")
@connected
def create_webhook(
    session: Session,
    *,
    name: Name,
    to: To,
    in_: InNamespace = None,
    after: After = None,
    paused: Paused = False,
    dry_run: DryRun = False,
) -> None:
    """Send records to a URL from now on, and print the secret, which cannot be shown again.

    For example: `moorage webhooks create orchestrator --to https://orchestrator.example/moorage`
    """
    session = session.trying(dry_run)
    settings = {"events": "Bindings", "disabled": paused, **_given(to, in_, after)}
    try:
        made = session.client.put(_path(session, name), settings, {"If-None-Match": "*"})
    except Refused as error:
        if error.problem.get("code") != IS_THERE:
            raise
        message = f"There is a webhook {name} already; `change` and `rotate-secret` change it."
        raise Refused({**error.problem, "detail": message}) from None
    _tell_secret(session, made, f"{name} is made")


@webhooks.command("change")
@connected
def change_webhook(
    session: Session,
    *,
    name: Name,
    to: NewTo = None,
    in_: InNamespace = None,
    all_namespaces: OfAll = False,
    after: After = None,
    dry_run: DryRun = False,
) -> None:
    """Change single settings of a webhook; the others stay, and so does its secret.

    For example, to have records sent again: `moorage webhooks change orchestrator --after 1042`
    """
    if all_namespaces and in_:
        raise WrongUsage("--in and --all-namespaces exclude each other.")
    changes = _given(to, in_, after) | ({"namespace": None} if all_namespaces else {})
    if not changes:
        raise WrongUsage("Say what to change: --to, --in, --all-namespaces or --after.")
    _patch(session.trying(dry_run), name, changes, "is changed")


@webhooks.command("pause")
@connected
def pause_webhook(session: Session, *, name: Name, dry_run: DryRun = False) -> None:
    """Send nothing for now; what happens meanwhile is sent later, as far as the log reaches back."""
    _patch(session.trying(dry_run), name, {"disabled": True}, "is paused")


@webhooks.command("resume")
@connected
def resume_webhook(session: Session, *, name: Name, dry_run: DryRun = False) -> None:
    """Go on where the receiver was, after a pause, or after failures have stopped the webhook."""
    _patch(session.trying(dry_run), name, {"disabled": False}, "goes on")


@webhooks.command("ping")
@connected
def ping_webhook(session: Session, *, name: Name) -> None:
    """Send a test message at once; the exit code is 1 if the receiver does not acknowledge it."""
    came = session.client.post_again(_path(session, name, "ping"))
    if not session.output.for_people:
        session.output.document(came)
    if not came["acknowledged"]:
        raise PingFailed(came["error"])
    if session.output.for_people:
        session.output.line(f"{name} answered {came['status']}")


@webhooks.command("rotate-secret")
@connected
def rotate_secret(session: Session, *, name: Name) -> None:
    """Give a webhook another secret, and print it: it cannot be shown again.

    Messages are signed with the earlier one as well for a while, so that the receiver can take the
    new one without a pause.
    """
    made = session.client.post_again(_path(session, name, "secret"))
    until = made["previousSecretUntil"]
    _tell_secret(session, made, f"Messages are signed with the earlier secret, too, until {until}")


@webhooks.command("delete")
@connected
def delete_webhook(session: Session, *, name: Name, dry_run: DryRun = False) -> None:
    """Send nothing to this address any more, and forget it."""
    session = session.trying(dry_run)
    gone = session.client.delete(_path(session, name))
    session.done(gone, f"{name} is deleted")


def _path(session: Session, *parts: str) -> str:
    return session.client.path("webhooks", *parts)


def _given(to: str | None, in_: str | None, after: int | None) -> dict[str, Any]:
    settings = {"url": to, "namespace": in_, "afterRevision": after}
    return {key: value for key, value in settings.items() if value is not None}


def _patch(session: Session, name: str, changes: dict[str, Any], done: str) -> None:
    session.done(session.client.patch(_path(session, name), changes), f"{name} {done}")


def _tell_secret(session: Session, webhook: dict[str, Any], sentence: str) -> None:
    """Print the secret alone, so that a script can read it."""
    if session.output.for_people:
        session.output.note(f"{sentence}{session.suffix}")
        session.output.line(webhook["secret"])
    else:
        session.output.document(webhook)


def _row(webhook: dict[str, Any], clock: Clock) -> list[Any]:
    status = webhook["status"]
    delivered = clock.since(status.get("lastDeliveredAt"))
    return [
        webhook["name"],
        _state(webhook),
        status["revision"],
        status["behind"],
        f"{delivered} ago" if delivered else "never",
        status["failures"],
        _next_try(webhook),
        webhook["url"],
        status.get("lastError", ""),
    ]


def _state(webhook: dict[str, Any]) -> str:
    if webhook["disabled"]:
        return "paused"
    if webhook["status"]["stopped"]:
        return "stopped"
    return "failing" if webhook["status"]["failures"] else "active"


def _next_try(webhook: dict[str, Any]) -> str:
    is_sent = not webhook["disabled"] and not webhook["status"]["stopped"]
    return str(webhook["status"].get("nextAttemptAt", "")) if is_sent else ""
