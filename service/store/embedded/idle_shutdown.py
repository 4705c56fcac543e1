"""Shuts down a PostgreSQL without users, as a separate process for each server.

Normally, the last process that uses a data folder stops the server. If that process is killed, this
one sees that the users' lock is free, and shuts the server down. It runs as a plain script with the
standard library only, so that it is small and starts quickly:

    idle_shutdown.py <pidfd of the server> <descriptor of users.lock>
"""

import fcntl
import select
import signal
import sys

_ROUND_SECONDS = 1.0
_SHUTDOWN_SECONDS = 60.0


def main(server: int, users: int) -> None:
    """Wait until the server has ended, or shut it down once the folder has no users."""
    while not _has_ended(server, _ROUND_SECONDS):
        if _nobody_uses(users):
            _end(server)
            return  # ending releases the lock, for which a new user may be waiting


def _has_ended(server: int, seconds: float) -> bool:
    return bool(select.select([server], [], [], seconds)[0])


def _nobody_uses(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(server: int) -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        try:
            signal.pidfd_send_signal(server, number)
        except ProcessLookupError:
            return
        if _has_ended(server, _SHUTDOWN_SECONDS):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
