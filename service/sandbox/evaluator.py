"""The evaluator, which has child processes answer questions, and replaces those that die."""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from service.model.devices.cel_questions import ANSWERS, Key, Question
from service.sandbox.frames import HEADER, answer_of, framed

COMMAND = (sys.executable, "-m", "service.sandbox.child")
CHILDREN_MAX = 2
BATCH_QUESTIONS = 256
DEATHS_MAX = 2
"""How many children may die while answering a question, in case something else killed them."""
LOGGED_LENGTH_MAX = 200
TOO_SLOW = "operation cancelled: the evaluation takes too long"
KILLED = "operation cancelled: the evaluation needs too much memory or time"
_ITSELF = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""Signals that end a process because of its own faults."""

_log = logging.getLogger(__name__)


class Evaluator:
    """A pool of at most two child processes that answer questions; they start on demand."""

    def __init__(self, children_max: int = CHILDREN_MAX, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._idle: list[_Child | None] = [None] * children_max
        """The idle children; None stands for one that is not started yet."""
        self._free = asyncio.Semaphore(children_max)
        self._asked: dict[Key, asyncio.Future[None]] = {}
        """The questions being answered; each future ends with the answers of one batch."""
        self.deaths = 0
        """How many questions have been stopped so far."""

    async def answer(self, questions: Sequence[Question]) -> None:
        """Answer all questions, and put the answers into the cache."""
        asked_before = {end for key in _keys(questions) if (end := self._asked.get(key))}
        new = {question.key: question for question in questions if question.key not in self._asked}
        await self._answer_in_turns(list(new.values()))
        if asked_before:
            await asyncio.wait(asked_before)

    async def _answer_in_turns(self, questions: list[Question]) -> None:
        """Answer batches in turn, so that a caller with many questions waits longer than others."""
        starts = range(0, len(questions), BATCH_QUESTIONS)
        batches = [questions[start : start + BATCH_QUESTIONS] for start in starts]
        ends = [asyncio.get_running_loop().create_future() for _ in batches]
        for batch, end in zip(batches, ends, strict=True):
            self._asked.update(dict.fromkeys(_keys(batch), end))
        try:
            for batch, end in zip(batches, ends, strict=True):
                await self._answer_batch(batch)
                self._end(batch, end)
        finally:
            for batch, end in zip(batches, ends, strict=True):
                self._end(batch, end)

    def _end(self, batch: list[Question], end: asyncio.Future[None]) -> None:
        """Wake the callers that wait for the questions of a batch."""
        if not end.done():
            for key in _keys(batch):
                del self._asked[key]
            end.set_result(None)

    def children(self) -> list[int]:
        """Return the process ids of the idle children."""
        return [child.pid for child in self._idle if child is not None]

    async def close(self) -> None:
        """End all children."""
        for child in self._idle:
            if child is not None:
                await child.end()
        self._idle = [None] * len(self._idle)

    async def _answer_batch(self, questions: list[Question]) -> None:
        deaths = 0
        while questions := [question for question in questions if question.key not in ANSWERS]:
            # Each turn is short, so that other callers get theirs.
            async with self._free:
                answers, reason = await self._turn(questions)
            for question, answer in zip(questions, answers, strict=False):
                ANSWERS.put(question.key, answer)
            if reason is None:
                deaths = 0
                continue
            deaths = 1 if answers else deaths + 1
            if len(answers) < len(questions) and (reason or deaths >= DEATHS_MAX):
                self._give_up(questions[len(answers)], reason or KILLED)
                deaths = 0

    def _give_up(self, question: Question, reason: str) -> None:
        self.deaths += 1
        fields = {"reason": reason, "expression": question.texts[0][:LOGGED_LENGTH_MAX]}
        _log.warning("An expression was stopped.", extra=fields)
        ANSWERS.put(question.key, question.without_answer(reason))

    async def _turn(self, questions: list[Question]) -> tuple[list[Any], str | None]:
        """Return the first answers, and why the child died ("" if unknown), or None if it lives."""
        child = self._idle.pop()
        try:
            if child is None:
                child = await _Child.start(self._command)
            answers, is_alive = await child.ask(questions)
        except BaseException:
            if child is not None:
                await child.end()
            self._idle.append(None)
            raise
        self._idle.append(child if is_alive else None)
        return answers, None if is_alive else await child.end()


def _keys(questions: Sequence[Question]) -> Iterator[Key]:
    for question in questions:
        yield question.key


class _Child:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    async def start(cls, command: Sequence[str]) -> "_Child":
        """Start a child; it imports what it needs at the first question."""
        paths = os.pathsep.join(filter(None, sys.path))
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                env={"PYTHONPATH": paths, "MALLOC_ARENA_MAX": "1"},
                # A terminal's Ctrl-C must not reach the child, which ends with its input.
                start_new_session=True,
            )
        )

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    async def ask(self, questions: list[Question]) -> tuple[list[Any], bool]:
        """Return the answers to the first questions, and True if the child is still alive."""
        answers: list[Any] = []
        try:
            self._stdin.write(framed(questions))
            await self._stdin.drain()
            while length := HEADER.unpack(await self._stdout.readexactly(HEADER.size))[0]:
                answers.append(answer_of(await self._stdout.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return answers, False
        return answers, True

    async def end(self) -> str:
        """End the child; return why it had died, or "" if unknown."""
        self._stdin.close()
        with suppress(ProcessLookupError):
            if self._process.returncode is None and not self._stdout.at_eof():
                self._process.kill()
        code = await self._process.wait()
        if code == -signal.SIGPROF:
            return TOO_SLOW
        return KILLED if -code in _ITSELF else ""
