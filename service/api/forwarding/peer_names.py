"""Names of workers: an id, and the server's id and an address if servers forward to each other.

The form is `WORKER` or `WORKER.SERVER@HOST:PORT`; both ids are new at every start.
"""

from typing import NamedTuple


class Address(NamedTuple):
    """The address at which a worker listens to workers of other servers."""

    host: str
    """A name or an address; an IPv6 address without brackets."""
    port: int

    @property
    def text(self) -> str:
        """Return the address in the form that `parse_address` accepts."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host:port`; an IPv6 address is in brackets."""
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


def name_of(worker_id: str, server_id: str, address: Address) -> str:
    """Return the name by which workers of other servers can reach a worker."""
    return f"{worker_id}.{server_id}@{address.text}"


def id_in(name: str) -> str:
    """Return the id in a worker's name."""
    return name.partition("@")[0].partition(".")[0]


def server_in(name: str) -> str | None:
    """Return the id of a worker's server, or None if the name has none."""
    ids, _, address = name.partition("@")
    return ids.partition(".")[2] if address else None


def address_in(name: str) -> Address | None:
    """Return the address in a worker's name, or None if only its own server can reach it."""
    _, _, address = name.partition("@")
    return parse_address(address) if address else None
