"""Ports of this machine that nobody else gets between their choice and the moment in which somebody listens there."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from service.cli.errors import WrongUsage

LOOPBACK = "127.0.0.1"


def hold_port(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """A socket that keeps a port, any free one for 0, until it is closed.

    It never listens, so it gets no connections. The kernel gives its port to nobody who asks for any free one; whoever names the port
    may listen there as granian does (SO_REUSEPORT, of the same user), again and again.
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
    """The port that a socket is bound to."""
    return int(held.getsockname()[1])


@contextmanager
def claimed_port(host: str, port: int) -> Iterator[int]:
    """The port to listen on: `port` if nobody listens there, or a free one for 0, kept until the end.

    Raises:
        WrongUsage: the address is taken, or is not one of this machine.
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
            raise WrongUsage(f"Cannot listen on {host}:{port}: {reason}.") from None
        if sys.platform != "linux":  # elsewhere granian's one socket shares its port with nobody
            held.close()
        yield claimed


def refuse_taken_port(host: str, port: int) -> None:
    """Tell at once, and not by a process that ends, that somebody listens there.

    Raises:
        WrongUsage: the address is taken, or is not one of this machine.
    """
    with claimed_port(host, port):
        pass


def _sole_server(port: int) -> socket.socket:
    """What only one supervisor of a machine can have for each port, as long as it lives.

    Two that start at the same moment both find nobody listening, and their workers would share the port: of the requests to one, half
    would go to the other. A name in the abstract namespace is taken at once and goes with its process.

    Raises:
        OSError: another one has it.
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
    """Granian's sockets share a port with whoever asks (SO_REUSEPORT), so it would not notice another server.

    Raises:
        OSError: somebody does.
    """
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen()


def _family(host: str) -> socket.AddressFamily:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
