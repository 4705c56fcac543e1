"""Children that evaluate expressions, and what becomes of questions of which they die."""

import asyncio
import os
import signal
import sys

import psutil
import pytest

from service.model.devices.cel_questions import ANSWERS, Answers, DeviceQuestion, PolicyQuestion
from service.sandbox import Evaluator
from service.sandbox.evaluator import KILLED, TOO_SLOW
from tests.model.objects.test_cel_costs import BOMBS

UNLIMITED = (
    "from service.model.cel import calls\n"
    "calls.COST_MAX = calls.WEIGHT_MAX = 10**30\n"
    "from service.sandbox.child import main\n"
    "main()"
)
"""A child that refuses nothing because of its estimate, so that only its bounds are left."""
DYING = (
    "import os, signal, sys\n"
    "from service.model.devices.cel_questions import DeviceQuestion\n"
    "answer = DeviceQuestion.answer\n"
    "def dies(self, *guard):\n"
    "    if 'deadly' in self.text:\n"
    "        os.kill(os.getpid(), signal.SIGKILL)\n"
    "    return answer(self, *guard)\n"
    "DeviceQuestion.answer = dies\n"
    "from service.sandbox.child import main\n"
    "main()"
)


def asked(text, driver="gpu.example.com"):
    return DeviceQuestion(text, driver, b"{}")


def known(question):
    return ANSWERS.get(question.key)


@pytest.fixture
def evaluators():
    made = []

    def make(program=None):
        command = () if program is None else ((sys.executable, "-c", program),)
        made.append(Evaluator(1, *command))
        return made[-1]

    yield make
    assert all(each.children() == [] for each in made), "each test closes what it made"


async def test_answers_are_those_of_the_expressions(evaluators):
    evaluator = evaluators()
    yes, no = asked('device.driver == "gpu.example.com"'), asked('device.driver == "other"')
    absent = asked('device.attributes["a"].b == 1')
    policy = PolicyQuestion(
        ("object.a == 1", "object.b.all(x, x > 1)"), b'{"a": 1, "b": [1]}', None, None, {}
    )
    await evaluator.answer([yes, no, absent, policy])
    assert known(yes) is True
    assert known(no) is False
    assert "b" in known(absent)
    assert known(policy) == (1, None)
    await evaluator.close()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("text that doubles", "operation cancelled: the evaluation needs too much memory"),
        ("lists of lists", TOO_SLOW),
    ],
)
async def test_what_gets_by_the_estimate_is_stopped_and_stopped_alone(evaluators, kind, told):
    evaluator = evaluators(UNLIMITED)
    before, bomb, after = (
        asked(text, driver=kind) for text in ("true", BOMBS[kind], "device.driver != 'a'")
    )
    await evaluator.answer([before, bomb, after])
    assert known(before) is True
    assert known(bomb) == told
    assert known(after) is True
    await evaluator.close()


async def test_a_question_of_which_two_children_die_is_given_up_and_not_asked_again(evaluators):
    evaluator = evaluators(DYING)
    deadly, other = asked("'deadly' == device.driver"), asked("device.driver != 'deaf'")
    await evaluator.answer([deadly, other])
    assert (known(deadly), known(other)) == (KILLED, True)
    assert evaluator.deaths == 1
    await evaluator.answer([deadly])
    assert evaluator.deaths == 1
    await evaluator.close()


async def test_a_child_that_somebody_else_kills_costs_no_answer(evaluators):
    evaluator = evaluators()
    await evaluator.answer([asked("device.driver == 'first'")])
    (child,) = evaluator.children()
    os.kill(child, signal.SIGKILL)
    question = asked("device.driver == 'second'")
    await evaluator.answer([question])
    assert known(question) is False
    assert evaluator.deaths == 0
    await evaluator.close()


async def test_a_child_has_no_secrets_and_ends_with_its_server(evaluators, monkeypatch):
    monkeypatch.setenv("MOORAGE_TOKEN", "secret")
    evaluator = evaluators()
    await evaluator.answer([asked("device.driver == 'third'")])
    (child,) = map(psutil.Process, evaluator.children())
    assert "MOORAGE_TOKEN" not in child.environ()
    await evaluator.close()
    assert not child.is_running()


async def test_many_questions_are_answered_by_few_children(evaluators):
    evaluator = evaluators()
    questions = [asked("device.driver == 'n1'", driver=f"n{n}") for n in range(1_000)]
    halves = questions[:600], questions[400:]
    await asyncio.gather(*map(evaluator.answer, halves))
    assert [known(each) for each in questions] == [n == 1 for n in range(1_000)]
    assert len(evaluator.children()) == 1
    await evaluator.close()


def test_the_oldest_answers_are_forgotten():
    answers = Answers(most=2, bytes_max=100)
    for key in (("a",), ("b",), ("c",)):
        answers.put(key, "yes")
    assert [(each,) in answers for each in "abc"] == [False, True, True]
    answers.put(("d" * 99,), "yes")
    assert [(each,) in answers for each in "abc"] == [False, False, True]
    answers.put(("e" * 100,), "yes")
    assert ("d" * 99,) not in answers
