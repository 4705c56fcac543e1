"""Questions to CEL expressions that come up in decisions, and their answers.

Decisions do not evaluate expressions themselves: a question without an answer is noted as open. The
caller has open questions answered where that is safe, and then decides again.
"""

from contextlib import nullcontext
from hashlib import blake2b
from typing import Any

import msgspec

from service.model.cel.evaluation import (
    ExpressionError,
    Guard,
    holds_within_budget,
    is_bounded,
)
from service.model.devices.device import Device
from service.model.devices.device_selectors import device_selector

Key = tuple[str | bytes, ...]
"""What equal questions have in common."""
ANSWERS_MAX = 131_072
"""The most answers that a process keeps; the oldest are dropped."""
ANSWER_BYTES_MAX = 128 * 1024 * 1024
"""How long their questions may be together, where nothing else holds them any more."""
OPEN_MAX = 4_096
"""The most questions that a decision notes before they are answered and it is made again."""


TOO_MANY_ITEMS = "too many items"
"""Why policies are not asked about a pod."""


class DeviceQuestion(msgspec.Struct, frozen=True, tag="device", array_like=True):
    """Whether an expression selects a device of a driver with these contents.

    The answer is true or false; a text says why there is none.
    """

    text: str
    driver: str
    content: bytes

    @property
    def texts(self) -> tuple[str, ...]:
        """The expression alone."""
        return (self.text,)

    @property
    def key(self) -> Key:
        """A key that equal questions share."""
        return self.text, self.driver, self.content

    def answer(self, guard: Guard = nullcontext) -> Any:
        """Evaluate the expression."""
        try:
            return device_selector(self.text).selects(self.driver, self.content, guard)
        except ExpressionError as error:
            return str(error)

    def without_answer(self, reason: str) -> Any:
        """Return the answer if the expression cannot be evaluated for a reason."""
        return reason


class PolicyQuestion(msgspec.Struct, frozen=True, tag="policy", array_like=True):
    """Which of some expressions is the first that is not true of a pod.

    The answer is its index, with why it has no answer, or None if all are true.
    """

    texts: tuple[str, ...]
    new: bytes
    old: bytes | None
    namespace: bytes | None
    request: dict[str, str]

    @property
    def key(self) -> Key:
        """A digest that equal questions share, as they are too large to be kept."""
        asked = (self.texts, self.new, self.old, self.namespace, self.request)
        return (blake2b(msgspec.msgpack.encode(asked), digest_size=20).digest(),)

    def answer(self, guard: Guard = nullcontext) -> Any:
        """Evaluate the expressions."""
        documents = {"object": self.new, "oldObject": self.old, "namespaceObject": self.namespace}
        variables = {
            name: None if document is None else msgspec.json.decode(document)
            for name, document in documents.items()
        }
        if not all(map(is_bounded, variables.values())):
            return 0, TOO_MANY_ITEMS
        return holds_within_budget(self.texts, {**variables, "request": self.request}, guard)

    def without_answer(self, reason: str) -> Any:
        """Return the answer if the expressions cannot be evaluated for a reason."""
        return 0, reason


Question = DeviceQuestion | PolicyQuestion


class Answers:
    """The answers that a process knows."""

    def __init__(self, most: int = ANSWERS_MAX, bytes_max: int = ANSWER_BYTES_MAX) -> None:
        self._most = most
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: dict[Key, Any] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def get(self, key: Key) -> Any:
        """Return an answer, which may be None, or None if there is none yet."""
        return self._known.get(key)

    def put(self, key: Key, answer: Any) -> None:
        """Remember an answer, and forget the oldest if there are too many."""
        self._bytes += 0 if key in self._known else sum(map(len, key))
        self._known[key] = answer
        while len(self._known) > self._most or self._bytes > self._bytes_max:
            oldest = next(iter(self._known))
            self._bytes -= sum(map(len, oldest))
            del self._known[oldest]


ANSWERS = Answers()
"""Answers are facts, so all clusters of a process share them."""


class OpenQuestions:
    """The questions of a decision, and those without an answer yet."""

    def __init__(self) -> None:
        self.turn = 0
        """Changes with each decision: within one, what is open stays open."""
        self.are_deferred = False
        """Whether open questions are answered later; otherwise they are answered at once."""
        self.open: dict[Key, Question] = {}
        """The questions without an answer; always this one dictionary."""

    def __bool__(self) -> bool:
        return bool(self.open)

    @property
    def are_many(self) -> bool:
        """Whether no further question is noted until the open ones are answered."""
        return len(self.open) >= OPEN_MAX

    def begin(self, *, are_deferred: bool) -> None:
        """Forget the last decision's open questions, and note whether new ones are answered."""
        self.turn += 1
        self.are_deferred = are_deferred
        self.open.clear()

    def take(self) -> list[Question]:
        """Return the open questions, and begin anew."""
        questions = list(self.open.values())
        self.open.clear()
        return questions

    def selects(self, text: str, device: Device) -> bool | str | None:
        """Return whether an expression selects a device, an error, or None if it is open."""
        # The usual case must not make a question first.
        key = (text, device.driver, device.content)
        answer: bool | str | None = ANSWERS.get(key)
        if answer is not None:
            return answer
        question = DeviceQuestion(text, device.driver, device.content)
        return None if self._is_open(key, question) else ANSWERS.get(key)

    def failing(self, question: PolicyQuestion) -> tuple[bool, tuple[int, str | None] | None]:
        """Return whether a question is open; else the first policy that is not true, or None."""
        key = question.key
        if key not in ANSWERS and self._is_open(key, question):
            return True, None
        return False, ANSWERS.get(key)

    def _is_open(self, key: Key, question: Question) -> bool:
        if not self.are_deferred:
            ANSWERS.put(key, question.answer())
            return False
        if not self.are_many:
            self.open[key] = question
        return True
