"""Suggests namespaces for an object that is missing in the namespace searched."""

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.exceptions import CliError, Refused
from moorage.cli.session.options import Session
from moorage.cli.session.resources import Target

NOT_FOUND = "NotFound"
NAMESPACES_MAX = 5
"""How many namespaces a message names at most."""


@contextmanager
def suggest_namespaces(session: Session, target: Target) -> Iterator[None]:
    """Add to the error about a missing object the namespaces that do have such an object.

    Raises:
        Refused: the server refused what was asked of it.
    """
    try:
        yield
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND or not (target.namespace and target.name):
            raise
        namespaces = _namespaces_with(session, target)
        if not namespaces:
            raise
        where = ", ".join(f"-n {namespace}" for namespace in namespaces[:NAMESPACES_MAX])
        more = " and others" if len(namespaces) > NAMESPACES_MAX else ""
        detail = f"{error} There is one of this name elsewhere: {where}{more}."
        raise Refused({**error.problem, "detail": detail}) from error


def _namespaces_with(session: Session, target: Target) -> list[str]:
    """Return the other visible namespaces that have an object of this kind and name."""
    path = target.resource.path(session.client, None)
    named: dict[str, str | int] = {
        "fieldSelector": f"metadata.name={target.name}",
        "limit": NAMESPACES_MAX + 1,
    }
    try:
        items = session.client.get(path, named)["items"]
    except CliError:
        # The main answer is known; this request would only have added to it.
        return []
    return sorted({item["metadata"]["namespace"] for item in items})
