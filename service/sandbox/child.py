"""The program of a child process: answers questions until its input ends.

It reads nothing but its input, and has no secrets: its environment is empty. Beyond the limits of
`bounds` it dies, and the server answers with an error instead.
"""

import signal
import sys
import time
from contextlib import suppress
from typing import BinaryIO

from service.model.devices.cel_questions import Question
from service.sandbox.bounds import PREPARATION_SECONDS, evaluating, resident_bytes, within
from service.sandbox.frames import END, HEADER, framed, questions_of

TURN_SECONDS = 0.05
"""The time after which a batch ends early, so that other batches get their turn."""
RESIDENT_BYTES_MAX = 256 * 1024 * 1024
"""The resident memory, such as of compiled expressions, beyond which a child ends after a batch."""
NO_MEMORY = "operation cancelled: the evaluation needs too much memory"


def main() -> None:
    """Answer batches of questions from standard input on standard output."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    with suppress(BrokenPipeError):
        while header := source.read(HEADER.size):
            (length,) = HEADER.unpack(header)
            _answer_batch(questions_of(source.read(length)), answers)
            if resident_bytes() > RESIDENT_BYTES_MAX:
                return


def _answer_batch(questions: list[Question], answers: BinaryIO) -> None:
    end = time.monotonic() + TURN_SECONDS
    for question in questions:
        answers.write(framed(_answer(question)))
        answers.flush()
        if time.monotonic() >= end:
            break
    answers.write(END)
    answers.flush()


def _answer(question: Question) -> object:
    try:
        with within(PREPARATION_SECONDS):
            return question.answer(evaluating)
    except MemoryError:
        return question.without_answer(NO_MEMORY)


if __name__ == "__main__":
    main()
