"""TCP ports: kept free of other programs until a server listens on them."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from service.server.failures import ConfigurationError

LOOPBACK = "127.0.0.1"


def hold_port(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Return a socket that reserves a port (for 0: any free port) until the socket is closed.

    It never listens, so it gets no connections. The kernel gives the port to no program that asks
    for any free port. A process of the same user that names the port may listen on it as granian
    does (SO_REUSEPORT), any number of times.
    """
    held = socket.socket(_family(host), socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    return held


def port_of(held: socket.socket) -> int:
    """Return the port that a socket is bound to."""
    return int(held.getsockname()[1])


@contextmanager
def claimed_port(host: str, port: int) -> Iterator[int]:
    """Reserve a port during the context: `port` if it is free, or any free port for 0.

    Raises:
        ConfigurationError: the address is taken, or is not of this machine.
    """
    with ExitStack() as stack:
        try:
            if port:
                _require_no_listener(host, port)
            held = stack.enter_context(hold_port(host, port))
            claimed = port_of(held)
            stack.enter_context(_lock_port(claimed))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(f"Cannot listen on {host}:{port}: {reason}.") from None
        if sys.platform != "linux":  # elsewhere, granian's one socket does not share its port
            held.close()
        yield claimed


def require_free_port(host: str, port: int) -> None:
    """Check that a port is free before starting a process that would otherwise fail to bind it.

    Raises:
        ConfigurationError: the address is taken, or is not of this machine.
    """
    with claimed_port(host, port):
        pass


def _lock_port(port: int) -> socket.socket:
    """Lock a port for this supervisor until its process ends.

    If two supervisors start at the same moment, both find the port free. Their workers would
    then share the port, and half of the requests to one server would go to the other. A name in
    Linux's abstract socket namespace is taken atomically, and is freed when its process ends.

    Raises:
        OSError: another supervisor has the lock.
    """
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        if sys.platform == "linux":
            held.bind(f"\0moorage-serves-{port}")
    except OSError:
        held.close()
        raise
    return held


def _require_no_listener(host: str, port: int) -> None:
    """Check that a port has no listener.

    Granian would not notice one: its sockets share their port with others (SO_REUSEPORT).

    Raises:
        OSError: the port has a listener.
    """
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen()


def _family(host: str) -> socket.AddressFamily:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
