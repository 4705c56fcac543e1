"""Names of workers: an id, and where servers forward to each other, the server's id and an address.

`WORKER`, or `WORKER.SERVER@HOST:PORT`, where both ids are made anew at every start.
"""

from typing import NamedTuple


class Address(NamedTuple):
    """Where a worker listens to workers of other servers."""

    host: str
    """A name or an address; an IPv6 address without brackets."""
    port: int

    @property
    def text(self) -> str:
        """The address as `parse_address` takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host:port`, where an IPv6 address has brackets."""
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


def name_of(worker_id: str, server_id: str, address: Address) -> str:
    """The name by which workers of other servers find a worker too."""
    return f"{worker_id}.{server_id}@{address.text}"


def id_in(name: str) -> str:
    """The id of a worker, whether or not its name has an address."""
    return name.partition("@")[0].partition(".")[0]


def server_in(name: str) -> str | None:
    """The id of a worker's server; None if only workers of that server know the name."""
    ids, _, address = name.partition("@")
    return ids.partition(".")[2] if address else None


def address_in(name: str) -> Address | None:
    """The address in a worker's name; None if only workers of its own server can reach it."""
    _, _, address = name.partition("@")
    return parse_address(address) if address else None
