"""Random choices, and the manifests that they make."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

Manifest = dict[str, Any]
Labels = dict[str, str]


class Draws(Random):
    """The random choices of one case."""

    def happens(self, share: float) -> bool:
        """Return True in this share of all draws."""
        return self.random() < share

    def some(self, items: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """Return distinct items in random order, at least `least` and at most `most`."""
        most = len(items) if most is None else min(most, len(items))
        return self.sample(items, self.randint(min(least, most), most))

    def weighted(self, weights: dict[T, int]) -> T:
        """Return a key with a chance in proportion to its weight."""
        return self.choices(list(weights), list(weights.values()))[0]

    def optional(self, share: float, name: str, value: object) -> Manifest:
        """Return a map of one field in this share of all draws, and else an empty one."""
        return {name: value} if self.happens(share) else {}


def without_absent(manifest: Manifest) -> Manifest:
    """Return a map without the fields that are None, empty maps, or empty lists."""
    return {name: value for name, value in manifest.items() if value not in (None, {}, [])}
