"""How decisions get answers from expressions of CEL without evaluating any themselves.

A decision that meets a question without an answer ends with `Unanswered`. Its changes are undone,
the question is answered outside of the event loop, and the request is decided again.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

from service.model.errors import Overloaded
from service.model.objects.cel_questions import OpenQuestions, Question
from service.scheduler.protocol.ports import Clock

T = TypeVar("T")
LATE = "The expressions that this request needs could not be evaluated in time."


class Unanswered(Exception):  # noqa: N818 - the decision is made again
    """A decision needs answers that are not known yet."""

    def __init__(self, questions: Sequence[Question] = ()) -> None:
        super().__init__()
        self.questions = questions


class AnswersQuestions(Protocol):
    """Evaluates expressions within bounds of time and memory."""

    async def answer(self, questions: Sequence[Question]) -> None:
        """Have all answers known when this returns, whatever the expressions do."""
        ...


def until_unanswered(
    steps: Generator[None, None, T], questions: OpenQuestions
) -> Generator[None, None, T]:
    """Take the steps of a decision, and end it early when it has met an open question.

    It goes on for as many steps as it took to the first open question, so that questions about
    many objects are answered together. Whatever it says then, errors too, may rest on what is not
    known, and is thrown away.

    Raises:
        Unanswered: it has met one.
    """
    is_open, count, first = questions.open, 0, 0
    try:
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                if is_open:
                    raise Unanswered from None
                value: T = stop.value
                return value
            except Exception:
                if is_open:
                    raise Unanswered from None
                raise
            count += 1
            if is_open:
                first = first or count
                if count >= 2 * first or questions.are_many:
                    raise Unanswered
            yield
    finally:
        steps.close()


async def answer_until(
    end: float, clock: Clock, expressions: AnswersQuestions, questions: Sequence[Question]
) -> None:
    """Have questions answered before a time, in the clock's monotonic seconds.

    Raises:
        Overloaded: that took too long.
    """
    try:
        async with asyncio.timeout(max(0.0, end - clock.monotonic())):
            await expressions.answer(questions)
    except TimeoutError:
        raise Overloaded(LATE) from None
