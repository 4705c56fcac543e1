"""How much of each node is used, and how much is free."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.cli.session.client import Client
from moorage.quantity import ceil_milli, ceil_whole, parse_quantity

MEBI = 1 << 20


GIBI = 1 << 30


@dataclass(frozen=True)
class Usage:
    """What pods leave free of a node, as quantities by resource; negative where over-committed."""

    free: Mapping[str, str]

    def amounts(self, resource: str, size: str) -> tuple[int, int, int]:
        """Return in nanos how much of a resource there is, is used, and is free."""
        whole = parse_quantity(size)
        free = parse_quantity(self.free.get(resource, size))
        return whole, whole - free, free

    def shown(self, resource: str, size: str) -> Sequence[str]:
        """Return what is used, how much of the whole that is, and what is free."""
        return shown_amounts(resource, *self.amounts(resource, size))


def usage_of_nodes(client: Client) -> dict[str, Usage]:
    """Return what is free on each node, by its name, exactly as the server counts it."""
    answer = client.get(client.path("topology"), {"key": "metadata.name"})
    return {domain["value"]: Usage(domain["free"]) for domain in answer["domains"]}


def readable(resource: str, nanos: int) -> str:
    """Write an amount as people do: cpu in cores or thousandths, bytes in Gi or Mi."""
    if resource == "cpu":
        milli = ceil_milli(nanos)
        return f"{milli}m" if milli % 1000 else str(milli // 1000)
    whole = ceil_whole(nanos)
    for unit, size in (("Gi", GIBI), ("Mi", MEBI)):
        if abs(whole) >= size:
            return f"{whole / size:.1f}".removesuffix(".0") + unit
    return str(whole)


def shown_amounts(resource: str, whole: int, used: int, free: int) -> Sequence[str]:
    """Return what is used, how much of the whole that is, and what is free."""
    share = f"{100 * used // whole}%" if whole else "-"
    return readable(resource, used), share, readable(resource, free)
