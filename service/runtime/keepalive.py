"""TCP keepalive, which ends connections to peers that have vanished.

A peer whose machine is gone, or that the network cuts off, does not close its connection.
"""

import socket

_INTERVAL_SECONDS, _PROBES = 1, 3


def keep_alive(
    connected: socket.socket, *, idle_seconds: int = 2, unacknowledged_seconds: int = 4
) -> None:
    """Make a TCP connection fail soon after its peer has vanished.

    After `idle_seconds` of silence, the peer is probed three times, a second apart. Sent data may
    stay unacknowledged for `unacknowledged_seconds`.
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
