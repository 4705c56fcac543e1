"""Asks a server for a session, the only proof that it is ready."""

import enum
import re
import socket
import struct
from pathlib import Path

from service.store.embedded.config import DATABASE, ROLE

_ANSWER_SECONDS_MAX = 5.0
_ANSWER_BYTES_MAX = 4096
_PROTOCOL_VERSION = 3 << 16
_TERMINATE = b"X\0\0\0\4"


class ProbeAnswer(enum.Enum):
    """A server's answer to a request for a session."""

    READY = enum.auto()
    NOT_YET = enum.auto()  # it starts, recovers, shuts down or has no resources left
    REFUSED = enum.auto()  # it runs, but does not know our role or database
    SILENT = enum.auto()  # nothing listens


def ask(path: Path) -> ProbeAnswer:
    """Ask for a session at the socket `path`, as the service itself would, and disconnect."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_SECONDS_MAX)
            connection.connect(str(path))
            connection.sendall(_startup_message())
            answer = connection.recv(_ANSWER_BYTES_MAX)
            connection.sendall(_TERMINATE)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        return ProbeAnswer.SILENT
    except OSError:  # a full backlog, a reset, no answer in time: something listens
        return ProbeAnswer.NOT_YET
    return meaning_of(answer)


def _startup_message() -> bytes:
    fields = f"user\0{ROLE}\0database\0{DATABASE}\0\0".encode()
    return struct.pack("!ii", 8 + len(fields), _PROTOCOL_VERSION) + fields


def meaning_of(answer: bytes) -> ProbeAnswer:
    """Return the meaning of a server's first message to a client.

    It is an authentication request, where 0 means success, or an error with a SQLSTATE.
    """
    if answer.startswith(b"R"):
        (request,) = struct.unpack_from("!i", answer.ljust(9, b"\xff"), 5)
        return ProbeAnswer.READY if request == 0 else ProbeAnswer.REFUSED
    state = re.search(rb"\0C(\w{5})\0", answer)
    if state is None:
        return ProbeAnswer.NOT_YET
    if state[1] == b"53300":  # too_many_connections: it serves others
        return ProbeAnswer.READY
    return ProbeAnswer.REFUSED if state[1][:2] in (b"28", b"3D") else ProbeAnswer.NOT_YET
