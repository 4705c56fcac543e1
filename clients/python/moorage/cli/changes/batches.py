"""Splits long work into batches, with a progress bar."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from moorage.cli.input.manifests import told_by_manifest
from moorage.cli.input.workloads import Expansion
from moorage.cli.render.output import Output
from moorage.cli.session.client import Client
from moorage.cli.session.options import Session

T = TypeVar("T")

LINES_PER_REQUEST = 1_000
REFUSED = frozenset({"Invalid", "Denied", "Forbidden"})
"""The results of lines that were refused."""


def in_batches(output: Output, label: str, items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in batches of at most `size`, advancing a progress bar after each."""
    with output.progress() as progress:
        task = progress.add_task(label, total=len(items))
        for start in range(0, len(items), size):
            batch = items[start : start + size]
            yield batch
            progress.advance(task, len(batch))


def apply_lines(
    client: Client, output: Output, label: str, lines: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Send lines to `apply` in batches; results number all lines together."""
    path = client.path("apply")
    results: list[dict[str, Any]] = []
    for batch in in_batches(output, label, lines, LINES_PER_REQUEST):
        before = len(results)
        answers = client.post_lines(path, [msgspec.json.encode(line) for line in batch])
        results += [{**answer, "line": before + answer["line"]} for answer in answers]
    return results


def apply_at_once(session: Session, expansion: Expansion, prune: str | None) -> dict[str, Any]:
    """Apply all objects in one commit; `prune` names the kinds whose other objects are deleted."""
    body = {"apiVersion": "v1", "kind": "List", "items": expansion.objects}
    with told_by_manifest(expansion):
        answer: dict[str, Any] = session.client.post_once(
            session.client.path("apply"), body, {"prune": prune}
        )
    return answer
