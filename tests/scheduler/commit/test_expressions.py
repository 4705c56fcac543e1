"""Decisions that ask expressions: they end after a few rounds, and evaluate none themselves."""

import asyncio

import pytest

from service.model.core.errors import Denied, Overloaded
from service.model.core.generate_name import undrawn
from service.model.devices import cel_questions
from service.model.devices.cel_questions import (
    ANSWERS,
    ANSWERS_MAX,
    Answers,
    DeviceQuestion,
    PolicyQuestion,
)
from service.scheduler.protocol.intents import (
    ApplyObjects,
    ApplyPatch,
    BindPod,
    ExplainPod,
    FindCapacity,
    MakePlan,
    PlacePods,
    PutConfig,
    PutObject,
)
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import Place, SetConfig
from tests.builders import (
    GPU,
    asking,
    device,
    device_claim,
    device_class,
    node,
    pod,
    resource_slice,
)
from tests.scheduler.world import world

ROUNDS_MAX = 100
GOOD_IMAGES = "object.spec.containers[0].image.startsWith('good/')"
ANY_NAME = "object.metadata.name != 'x'"
ANSWER = {each: each.answer for each in (DeviceQuestion, PolicyQuestion)}
"""How questions are answered, whatever a test puts in the place of that."""


class Answering:
    """Answers questions, and notes how many there were in each round."""

    def __init__(self):
        self.rounds = []

    async def answer(self, questions):
        self.rounds.append(len(questions))
        assert len(self.rounds) <= ROUNDS_MAX, "the rounds do not end"
        await self.before()
        for each in questions:
            ANSWERS.put(each.key, ANSWER[type(each)](each))

    async def before(self):
        """What happens before a round is answered."""


class Slow(Answering):
    """Needs some seconds of the world's clock for each round."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.clock = seconds, None

    async def before(self):
        if self.clock is not None:
            self.clock.advance(self.seconds)


class Waiting(Answering):
    """Answers nothing until it is let."""

    def __init__(self):
        super().__init__()
        self.released = asyncio.Event()

    async def before(self):
        await self.released.wait()


@pytest.fixture(autouse=True)
def nothing_is_known():
    forget_answers()
    yield
    forget_answers()


def forget_answers(most=ANSWERS_MAX):
    """Forget all answers; keep at most so many from now on."""
    vars(ANSWERS).update(vars(Answers(most)))


def asking_of(answering, **options):
    return world(apart=lambda _world, _worker: {"expressions": answering}, **options)


async def configure(w, *policies, places_pending=False):
    told = [{"id": f"p{number}", "expression": each} for number, each in enumerate(policies)]
    await w.ask(PutConfig(config={"placePendingPods": places_pending, "policies": told}))


def at(place):
    return f'device.attributes["{GPU}"].place == "{place}"'


def slices(names, count=1):
    return [
        resource_slice(name, *(device(f"d{n}", place=f"{name}-{n}") for n in range(count)))
        for name in names
    ]


async def with_devices(w, *claims, nodes=2, count=1):
    names = [f"n{number}" for number in range(nodes)]
    await w.apply(*map(node, names), *slices(names, count), device_class(), *claims)


def of_image(name, image, uid=None):
    made = pod(name)
    made["spec"]["containers"][0]["image"] = image
    if uid is not None:
        made["metadata"]["uid"] = uid
    return made


def unnamed(w):
    return w.pod(pod("any")).named(undrawn("web-"))


# Policies


async def test_the_uid_that_a_client_sends_hides_nothing_from_policies():
    async with asking_of(Answering()) as w:
        await configure(w, GOOD_IMAGES)
        await w.apply(node("n"))
        tried = await w.place(of_image("b", "good/x", "123"), dry_run=True)
        assert tried.results[0].outcome == "Placed"
        for uid in ("evil", None):
            placed = await w.place(of_image("b", "evilgood/x", uid))
            (result,) = placed.results
            assert (result.outcome, result.reason) == ("Denied", "PolicyDenied")
        with pytest.raises(Denied):
            await w.apply(of_image("b", "evilgood/x", "evil"))
        assert await w.stored("Pod", "default", "b") is None


@pytest.mark.parametrize("how", ["placed", "applied", "created"])
async def test_policies_are_asked_about_generated_names_in_few_rounds(how):
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w, ANY_NAME)
        await w.apply(node("n"))
        intents = {
            "placed": PlacePods(pods=(unnamed(w),), undrawn=True),
            "applied": ApplyObjects(manifests=(unnamed(w),), undrawn=True),
            "created": PutObject(manifest=unnamed(w), create=True),
        }
        await w.ask(intents[how])
        assert len(await w.nodes_of_pods()) == 1
        assert len(answering.rounds) <= 3


@pytest.mark.parametrize("how", ["placed", "tried", "applied"])
async def test_a_request_ends_however_long_policies_take(how):
    answering = Slow(1.2)
    async with asking_of(answering) as w:
        await configure(w, ANY_NAME)
        await w.apply(node("n"))
        answering.clock = w.clock
        intents = {
            "placed": w.placing(pod("a"), pod("b")),
            "tried": w.placing(pod("a"), pod("b"), dry_run=True),
            "applied": ApplyObjects(manifests=w.parsed(pod("a"), pod("b"))),
        }
        await w.ask(intents[how])
        assert answering.rounds == [2]


async def test_a_managed_pod_is_written_however_long_policies_take():
    answering = Slow(1.2)
    async with asking_of(answering) as w:
        await configure(w, ANY_NAME)
        answering.clock = w.clock
        for labels in ({}, {"app": "web"}):
            answering.rounds.clear()
            applied = {"apiVersion": "v1", "kind": "Pod"} | pod("web").label(labels)
            await w.ask(
                ApplyPatch(
                    kind="Pod", namespace="default", name="web", applied=applied, manager="me"
                )
            )
            assert len(answering.rounds) <= 3
        stored = await w.stored("Pod", "default", "web")
        assert stored["metadata"]["labels"] == {"app": "web"}


async def test_a_thousand_pods_are_applied_in_few_rounds():
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w, ANY_NAME)
        await w.apply(*(pod(f"p{number}") for number in range(1_000)))
        assert len(answering.rounds) <= 8


# Devices


async def test_a_pod_is_bound_after_its_selectors_are_answered():
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w)
        await with_devices(w, device_claim("c", asking(1, at("n1-0"))), pod("web").devices("c"))
        await w.ask(BindPod(namespace="default", name="web", node_name="n1"))
        assert await w.nodes_of_pods() == {"web": "n1"}
        assert answering.rounds


async def test_answers_that_were_forgotten_are_asked_for_again():
    async with asking_of(Answering()) as w:
        await configure(w)
        await with_devices(w, device_claim("c", asking(1, at("n1-0"))), pod("web").devices("c"))
        tried = await w.place(pod("web").devices("c"), dry_run=True)
        assert tried.results[0].node_name == "n1"
        loads = w.store.calls["load"]
        forget_answers()
        placed = await w.place(pod("web").devices("c"))
        assert placed.results[0].node_name == "n1"
        assert w.store.calls["load"] == loads


async def test_a_decision_ends_that_needs_more_answers_than_are_kept(monkeypatch):
    monkeypatch.setattr(cel_questions, "OPEN_MAX", 40)
    forget_answers(most=120)
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w)
        claim = device_claim("c", asking(1, at("nowhere")))
        await with_devices(w, claim, nodes=10, count=8)
        tried = await w.place(pod("web").devices("c"), dry_run=True)
        assert tried.results[0].outcome == "Unschedulable"
        assert len(answering.rounds) <= 10


# Nothing is evaluated in the process itself


@pytest.fixture
def evaluated_here(monkeypatch):
    """The questions that were answered without being asked of anybody."""
    found = []
    for kind, answer in ANSWER.items():

        def noting(question, guard=None, answer=answer):
            found.append(question)
            return answer(question)

        monkeypatch.setattr(kind, "answer", noting)
    return found


async def test_work_beside_placements_evaluates_nothing_itself(evaluated_here):
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w, ANY_NAME)
        await with_devices(w, device_claim("c", asking(1, at("n1-0"))))
        pods = w.placing(pod("web").devices("c")).pods
        planners = w.schedulers[0].planners
        counted = await planners.capacity("default", FindCapacity(pods=pods))
        assert counted.fits == 1
        forget_answers()
        dry_run = PlacePods(pods=pods, dry_run=True)
        tried = await planners.try_out("default", dry_run, w.clock.seconds + 30)
        assert tried.results[0].node_name == "n1"
        assert len(answering.rounds) <= 6
        assert evaluated_here == []


async def test_a_plan_with_other_policies_evaluates_none_itself(evaluated_here):
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w)
        await w.apply(node("n"))
        policies = [{"id": "p", "expression": ANY_NAME}]
        plan = MakePlan(
            changes=(SetConfig(config={"policies": policies}),),
            goal=Place(pods=w.placing(pod("web")).pods),
        )
        await w.schedulers[0].planners.plan("default", plan)
        assert answering.rounds
        assert evaluated_here == []


async def test_an_explanation_at_a_past_configuration_evaluates_nothing_itself(evaluated_here):
    answering = Answering()
    async with asking_of(answering) as w:
        await configure(w)
        await with_devices(w, device_claim("c", asking(1, at("nowhere"))), pod("web").devices("c"))
        revision = await w.head_revision()
        await configure(w, ANY_NAME)
        forget_answers()
        explained = await w.schedulers[0].planners.explain_past(
            "default", ExplainPod(namespace="default", name="web"), revision
        )
        assert explained is not None
        assert answering.rounds
        assert evaluated_here == []


# Others do not wait


async def test_a_pending_pod_of_many_rounds_does_not_hold_up_others(monkeypatch):
    monkeypatch.setattr(cel_questions, "OPEN_MAX", 16)
    answering = Slow(0.5)
    async with asking_of(answering) as w:
        await configure(w, places_pending=True)
        texts = [f"device.driver != '{number}'" for number in range(8)]
        claim = device_claim("c", asking(1, *texts, at("nowhere")))
        await with_devices(w, claim, nodes=4, count=16)
        answering.clock = w.clock
        await w.apply(pod("slow").devices("c"), pod("other"))
        began = w.clock.seconds
        while (await w.nodes_of_pods())["other"] is None:
            await w.pass_time(0.01)
            assert w.clock.seconds < began + 3
        assert len(answering.rounds) <= 4


async def test_requests_that_are_set_aside_count_as_waiting():
    answering = Waiting()
    async with asking_of(answering, limits=Limits(inbox_requests_max=5)) as w:
        await configure(w, ANY_NAME)
        await w.apply(node("n"))
        asked = []
        try:
            for number in range(8):
                asked.append(asyncio.create_task(w.place(pod(f"p{number}"))))
                await w.others(20)
            refused = [task for task in asked if task.done()]
        finally:
            answering.released.set()
        assert refused == asked[5:]
        for task in refused:
            assert isinstance(task.exception(), Overloaded)
        placed = await asyncio.gather(*asked[:5])
        assert {each.results[0].outcome for each in placed} == {"Placed"}
