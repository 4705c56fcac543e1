"""The used and free resources of each node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.cli.session.client import Client
from moorage.quantity import ceil_milli, ceil_whole, parse_quantity

MEBI = 1 << 20


GIBI = 1 << 30


@dataclass(frozen=True)
class Usage:
    """A node's free resources, as quantities by resource; negative if overcommitted."""

    free: Mapping[str, str]

    def amounts(self, resource: str, size: str) -> tuple[int, int, int]:
        """Return the total, used, and free amounts of a resource, in nanos."""
        whole = parse_quantity(size)
        free = parse_quantity(self.free.get(resource, size))
        return whole, whole - free, free

    def shown(self, resource: str, size: str) -> Sequence[str]:
        """Return the used amount, its share of the total, and the free amount, formatted."""
        return shown_amounts(resource, *self.amounts(resource, size))


def usage_of_nodes(client: Client) -> dict[str, Usage]:
    """Return each node's free resources by node name, exactly as the server counts them."""
    answer = client.get(client.path("topology"), {"key": "metadata.name"})
    return {domain["value"]: Usage(domain["free"]) for domain in answer["domains"]}


def readable(resource: str, nanos: int) -> str:
    """Format an amount for people: cpu in cores or thousandths, bytes in Gi or Mi."""
    if resource == "cpu":
        milli = ceil_milli(nanos)
        return f"{milli}m" if milli % 1000 else str(milli // 1000)
    whole = ceil_whole(nanos)
    for unit, size in (("Gi", GIBI), ("Mi", MEBI)):
        if abs(whole) >= size:
            return f"{whole / size:.1f}".removesuffix(".0") + unit
    return str(whole)


def shown_amounts(resource: str, whole: int, used: int, free: int) -> Sequence[str]:
    """Return the used amount, its share of the total, and the free amount, formatted."""
    share = f"{100 * used // whole}%" if whole else "-"
    return readable(resource, used), share, readable(resource, free)
