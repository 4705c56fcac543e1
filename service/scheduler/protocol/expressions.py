"""How decisions use CEL expressions without evaluating any themselves.

A decision that reaches an unanswered question ends with `Unanswered`. Its changes are undone, the
question is answered outside the event loop, and the request is decided again.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

from service.model.core.errors import Overloaded
from service.model.devices.cel_questions import OpenQuestions, Question
from service.scheduler.protocol.ports import Clock

T = TypeVar("T")
LATE = "The expressions that this request needs could not be evaluated in time."


class Unanswered(Exception):  # noqa: N818 - the decision is made again
    """A decision needs answers that are not known yet."""

    def __init__(self, questions: Sequence[Question] = ()) -> None:
        super().__init__()
        self.questions = questions


class ExpressionEvaluator(Protocol):
    """Evaluates expressions within time and memory limits."""

    async def answer(self, questions: Sequence[Question]) -> None:
        """Answer all questions before returning, whatever the expressions do."""
        ...


def until_unanswered(
    steps: Generator[None, None, T], questions: OpenQuestions
) -> Generator[None, None, T]:
    """Run a decision, ending it early once it has reached an unanswered question.

    The decision continues for as many steps as it took to reach the first open question, so that
    questions about many objects are collected and answered together. Its result, including any
    error, is discarded, as it may depend on unknown answers.

    Raises:
        Unanswered: the decision has reached an unanswered question.
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
    end: float, clock: Clock, expressions: ExpressionEvaluator, questions: Sequence[Question]
) -> None:
    """Have questions answered by the time `end`, in the clock's monotonic seconds.

    Raises:
        Overloaded: the time ran out.
    """
    try:
        async with asyncio.timeout(max(0.0, end - clock.monotonic())):
            await expressions.answer(questions)
    except TimeoutError:
        raise Overloaded(LATE) from None
