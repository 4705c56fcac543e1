"""Has the system end TCP connections on which nothing comes through any more.

A peer whose machine has vanished, or to which a network lets nothing pass, ends no connection.
"""

import socket

_INTERVAL_SECONDS, _PROBES = 1, 3


def keep_alive(
    connected: socket.socket, *, idle_seconds: int = 2, unacknowledged_seconds: int = 4
) -> None:
    """Have a TCP connection fail soon after its peer has vanished.

    The peer is asked whether it is there after `idle_seconds` of silence, three times, a second apart;
    what was sent may stay without an acknowledgment for `unacknowledged_seconds`.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": idle_seconds,
        "TCP_KEEPINTVL": _INTERVAL_SECONDS,
        "TCP_KEEPCNT": _PROBES,
        "TCP_USER_TIMEOUT": 1000 * unacknowledged_seconds,
    }
    for option, value in options.items():
        if hasattr(socket, option):  # not every system has all these options
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
