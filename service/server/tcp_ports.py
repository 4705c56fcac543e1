"""Taking a port so that nobody else gets it before a server listens there."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from service.server.failures import ConfigurationError

LOOPBACK = "127.0.0.1"


def hold_port(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Open a socket that keeps a port (for 0: any free port) until the socket is closed.

    It never listens, so it gets no connections. If a program asks for any free port, the kernel
    does not give it this one. A process of the same user that names the port may listen there as
    granian does (SO_REUSEPORT), again and again.
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
    """Keep a port until the end of the context: `port` if nobody listens there, for 0 any free one.

    Raises:
        ConfigurationError: the address is taken, or is not one of this machine.
    """
    with ExitStack() as kept:
        try:
            if port:
                _assert_nobody_listens(host, port)
            held = kept.enter_context(hold_port(host, port))
            claimed = port_of(held)
            kept.enter_context(_sole_server(claimed))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(f"Cannot listen on {host}:{port}: {reason}.") from None
        if sys.platform != "linux":  # elsewhere granian's one socket shares its port with nobody
            held.close()
        yield claimed


def refuse_taken_port(host: str, port: int) -> None:
    """Check that nobody listens there, before starting a process that would only fail.

    Raises:
        ConfigurationError: the address is taken, or is not one of this machine.
    """
    with claimed_port(host, port):
        pass


def _sole_server(port: int) -> socket.socket:
    """Take a lock that only one supervisor of a machine can have for each port while it lives.

    If two supervisors start at the same moment, both find that nobody listens. Their workers would
    then share the port, and half of the requests to one server would go to the other. A name in
    Linux's abstract socket namespace is taken in one step, and is freed when its process ends.

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


def _assert_nobody_listens(host: str, port: int) -> None:
    """Check that nobody listens there, which granian would not notice.

    Granian's sockets share their port with others (SO_REUSEPORT).

    Raises:
        OSError: somebody listens there.
    """
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen()


def _family(host: str) -> socket.AddressFamily:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
