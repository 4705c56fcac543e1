"""Evaluation of CEL expressions on behalf of scheduling decisions.

Decisions do not evaluate expressions themselves: they record questions without a known answer as
open. The caller then has the open questions answered where evaluation is safe, and decides again.
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
"""The key that equal questions share."""
ANSWERS_MAX = 131_072
"""The most answers that a process keeps; the oldest are dropped."""
ANSWER_BYTES_MAX = 128 * 1024 * 1024
"""The most bytes that the keys of the kept answers may have in total."""
OPEN_MAX = 4_096
"""The most open questions that a decision records before they are answered and it is repeated."""


TOO_MANY_ITEMS = "too many items"
"""The error for a pod with too many list items to evaluate policies on it."""


class DeviceQuestion(msgspec.Struct, frozen=True, tag="device", array_like=True):
    """The question of whether an expression selects a device with this driver and contents.

    The answer is a boolean, or an error message if the expression cannot be evaluated.
    """

    text: str
    driver: str
    content: bytes

    @property
    def texts(self) -> tuple[str, ...]:
        """The expression, as the only item."""
        return (self.text,)

    @property
    def key(self) -> Key:
        """The key that equal questions share."""
        return self.text, self.driver, self.content

    def answer(self, guard: Guard = nullcontext) -> Any:
        """Evaluate the expression."""
        try:
            return device_selector(self.text).selects(self.driver, self.content, guard)
        except ExpressionError as error:
            return str(error)

    def without_answer(self, reason: str) -> Any:
        """Return the answer for an expression that cannot be evaluated."""
        return reason


class PolicyQuestion(msgspec.Struct, frozen=True, tag="policy", array_like=True):
    """The question of which policy expression is the first that is not true of a pod.

    The answer is the expression's index and its error, if any, or None if all are true.
    """

    texts: tuple[str, ...]
    new: bytes
    old: bytes | None
    namespace: bytes | None
    request: dict[str, str]

    @property
    def key(self) -> Key:
        """A digest that equal questions share, as questions are too large to keep."""
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
        """Return the answer for expressions that cannot be evaluated."""
        return 0, reason


Question = DeviceQuestion | PolicyQuestion


class Answers:
    """The answers known to a process."""

    def __init__(self, most: int = ANSWERS_MAX, bytes_max: int = ANSWER_BYTES_MAX) -> None:
        self._most = most
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: dict[Key, Any] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def get(self, key: Key) -> Any:
        """Return the answer, or None if unknown; a known answer may be None, too."""
        return self._known.get(key)

    def put(self, key: Key, answer: Any) -> None:
        """Store an answer, dropping the oldest ones beyond the limits."""
        self._bytes += 0 if key in self._known else sum(map(len, key))
        self._known[key] = answer
        while len(self._known) > self._most or self._bytes > self._bytes_max:
            oldest = next(iter(self._known))
            self._bytes -= sum(map(len, oldest))
            del self._known[oldest]


ANSWERS = Answers()
"""The process-wide answers: answers do not depend on the cluster, so all clusters share them."""


class OpenQuestions:
    """The open questions of one decision, and how they are handled."""

    def __init__(self) -> None:
        self.turn = 0
        """A number that changes with each decision; open questions stay open within a turn."""
        self.are_deferred = False
        """Whether to leave open questions for later, instead of answering them immediately."""
        self.open: dict[Key, Question] = {}
        """The open questions, by key; the dictionary is never replaced."""

    def __bool__(self) -> bool:
        return bool(self.open)

    @property
    def are_many(self) -> bool:
        """Whether the limit is reached, so that no further questions are recorded."""
        return len(self.open) >= OPEN_MAX

    def begin(self, *, are_deferred: bool) -> None:
        """Drop the previous decision's open questions, and set how to handle new ones."""
        self.turn += 1
        self.are_deferred = are_deferred
        self.open.clear()

    def take(self) -> list[Question]:
        """Return and clear the open questions."""
        questions = list(self.open.values())
        self.open.clear()
        return questions

    def selects(self, text: str, device: Device) -> bool | str | None:
        """Return whether an expression selects a device, an error message, or None if open."""
        # The common case must not create a question.
        key = (text, device.driver, device.content)
        answer: bool | str | None = ANSWERS.get(key)
        if answer is not None:
            return answer
        question = DeviceQuestion(text, device.driver, device.content)
        return None if self._is_open(key, question) else ANSWERS.get(key)

    def failing(self, question: PolicyQuestion) -> tuple[bool, tuple[int, str | None] | None]:
        """Return whether a question is open, and the first policy that is not true, or None."""
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
