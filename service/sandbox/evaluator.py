"""Has child processes answer questions, and replaces those that die of one."""

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
"""How many children may die of one question, if something else may have killed them."""
LOGGED_LENGTH_MAX = 200
TOO_SLOW = "operation cancelled: the evaluation takes too long"
KILLED = "operation cancelled: the evaluation needs too much memory or time"
_ITSELF = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""Signals by which a process ends that did something wrong itself."""

_log = logging.getLogger(__name__)


class Evaluator:
    """Answers questions in at most two child processes, which are started when they are needed."""

    def __init__(self, children_max: int = CHILDREN_MAX, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._idle: list[_Child | None] = [None] * children_max
        """The children that do nothing; None stands for one that is to be started."""
        self._free = asyncio.Semaphore(children_max)
        self._asked: dict[Key, asyncio.Future[None]] = {}
        """The questions that are being answered; each future ends with the answers to some."""
        self.deaths = 0
        """How many children have died of a question so far."""

    async def answer(self, questions: Sequence[Question]) -> None:
        """Have the answers to all questions among the known ones."""
        asked_before = {each for key in _keys(questions) if (each := self._asked.get(key))}
        new = {each.key: each for each in questions if each.key not in self._asked}
        await self._answer_in_turns(list(new.values()))
        if asked_before:
            await asyncio.wait(asked_before)

    async def _answer_in_turns(self, questions: list[Question]) -> None:
        """Answer one batch after the other, so that whoever asks much waits longer than others."""
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
        """Let go on who waits for the questions of a batch."""
        if not end.done():
            for key in _keys(batch):
                del self._asked[key]
            end.set_result(None)

    def children(self) -> list[int]:
        """Return the process ids of the children that do nothing now."""
        return [child.pid for child in self._idle if child is not None]

    async def close(self) -> None:
        """End all children."""
        for child in self._idle:
            if child is not None:
                await child.end()
        self._idle = [None] * len(self._idle)

    async def _answer_batch(self, questions: list[Question]) -> None:
        deaths = 0
        while questions := [each for each in questions if each.key not in ANSWERS]:
            # Each turn is short, and then others who wait get theirs.
            async with self._free:
                told, reason = await self._turn(questions)
            for question, answer in zip(questions, told, strict=False):
                ANSWERS.put(question.key, answer)
            if reason is None:
                deaths = 0
                continue
            deaths = 1 if told else deaths + 1
            if len(told) < len(questions) and (reason or deaths >= DEATHS_MAX):
                self._give_up(questions[len(told)], reason or KILLED)
                deaths = 0

    def _give_up(self, question: Question, reason: str) -> None:
        self.deaths += 1
        told = {"reason": reason, "expression": question.texts[0][:LOGGED_LENGTH_MAX]}
        _log.warning("An expression was stopped.", extra=told)
        ANSWERS.put(question.key, question.without_answer(reason))

    async def _turn(self, questions: list[Question]) -> tuple[list[Any], str | None]:
        """Return the first answers; if the child died, also why, or "" if that is not known."""
        child = self._idle.pop()
        try:
            if child is None:
                child = await _Child.start(self._command)
            told, is_alive = await child.ask(questions)
        except BaseException:
            if child is not None:
                await child.end()
            self._idle.append(None)
            raise
        self._idle.append(child if is_alive else None)
        return told, None if is_alive else await child.end()


def _keys(questions: Sequence[Question]) -> Iterator[Key]:
    for each in questions:
        yield each.key


class _Child:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    async def start(cls, command: Sequence[str]) -> "_Child":
        """Start a child; it imports what it needs when it is asked for the first time."""
        paths = os.pathsep.join(filter(None, sys.path))
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                env={"PYTHONPATH": paths, "MALLOC_ARENA_MAX": "1"},
                # A terminal's Ctrl-C is not for it: it ends with its input.
                start_new_session=True,
            )
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self, questions: list[Question]) -> tuple[list[Any], bool]:
        """Return the answers to the first questions, and whether the child is still alive."""
        told: list[Any] = []
        try:
            self._stdin.write(framed(questions))
            await self._stdin.drain()
            while length := HEADER.unpack(await self._stdout.readexactly(HEADER.size))[0]:
                told.append(answer_of(await self._stdout.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return told, False
        return told, True

    async def end(self) -> str:
        """End the child; return why it died before, or "" if that is not known."""
        self._stdin.close()
        with suppress(ProcessLookupError):
            if self._process.returncode is None and not self._stdout.at_eof():
                self._process.kill()
        code = await self._process.wait()
        if code == -signal.SIGPROF:
            return TOO_SLOW
        return KILLED if -code in _ITSELF else ""
