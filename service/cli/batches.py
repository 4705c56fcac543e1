"""Cutting long work into batches, with a bar that shows how far it is."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from service.cli.output import Output

T = TypeVar("T")


def in_batches(output: Output, label: str, items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, at most `size` at a time; the bar advances when a batch is done."""
    with output.progress() as progress:
        task = progress.add_task(label, total=len(items))
        for start in range(0, len(items), size):
            batch = items[start : start + size]
            yield batch
            progress.advance(task, len(batch))
