"""The protocol between a server and its child processes: length-prefixed messages.

A batch of questions is one message. The child sends each answer as its own message immediately, so
that the server knows which question killed a child, and an empty message at the end.
"""

import struct
from typing import Any

import msgspec

from service.model.devices.cel_questions import DeviceQuestion, PolicyQuestion, Question

HEADER = struct.Struct("!I")
END = HEADER.pack(0)
"""The empty message that ends the answers to a batch."""
_questions = msgspec.msgpack.Decoder(list[DeviceQuestion | PolicyQuestion])


def framed(value: object) -> bytes:
    """Return a message with its length prefix."""
    body = msgspec.msgpack.encode(value)
    return HEADER.pack(len(body)) + body


def questions_of(body: bytes) -> list[Question]:
    """Decode a batch of questions."""
    return list(_questions.decode(body))


def answer_of(body: bytes) -> Any:
    """Decode an answer."""
    answer = msgspec.msgpack.decode(body)
    return tuple(answer) if isinstance(answer, list) else answer
