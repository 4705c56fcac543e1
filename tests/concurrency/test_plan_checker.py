"""The judgement of plans finds what is wrong with them: each history is a right one that was altered."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace

from service.model.log.commit import Change, CommitInfo, LogPage
from service.scheduler.protocol.intents import DrainNode
from service.scheduler.protocol.plans import Planned
from tests.builders import matching, pod
from tests.concurrency.checker.history import History
from tests.concurrency.checker.plans import PlanCall, PlanTally, check_plans
from tests.concurrency.test_plan_commits import begin, removal, replacement
from tests.scheduler.world import World, world

Altered = Callable[[Change], Change]
Told = tuple[History, list[PlanCall]]


def call_of(number: int, answer: Planned, **about: Any) -> PlanCall:
    return PlanCall(
        number=number,
        outcome=answer.status,
        revision=answer.revision,
        steps=tuple(each.name for each in answer.steps),
        **about,
    )


async def right() -> Told:
    """A removal and a replacement that are committed at once, and a drain; a budget allows all of it."""
    async with world(workers=2) as w:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 3, "selector": matching(app="web")},
        }
        await begin(w)
        await w.apply(budget, pod("job-0").on("n4"))
        granted = await w.head_revision()
        calls = [
            call_of(0, await w.ask(removal(2)), count=2),
            call_of(
                1, await w.ask(replacement(w, "db-0", "db-9")), removed=("db-0",), placed=("db-9",)
            ),
        ]
        await w.ask(DrainNode(name="n4"))
        await w.pass_time(1)
        return await history_of(w, granted), calls


async def history_of(w: World, granted: int) -> History:
    page = await w.store.log.read(1, 0, None, 10_000)
    assert isinstance(page, LogPage)
    objects = await w.store.objects.read(1, None, 10_000)
    return History(
        commits=list(page.commits),
        changes=list(page.changes),
        head=(page.head.revision, page.head.tip),
        rows={tuple(row.key): (row.revision, row.body) for row in objects.rows},
        granted=granted,
    )


def altered(history: History, alter: Altered) -> History:
    """Return the same log with other changes, and the tables that they add up to."""
    changes = [alter(each) for each in history.changes]
    rows: dict[Any, tuple[int, bytes]] = {}
    for each in changes:
        rows.pop(tuple(each.key), None)
        if each.verb == "Put":
            rows[tuple(each.key)] = (each.revision, each.body)
    return History(
        commits=history.commits,
        changes=changes,
        head=history.head,
        rows=rows,
        granted=history.granted,
    )


def torn(history: History) -> History:
    """Return the same changes, each in a commit of its own."""
    commits: list[CommitInfo] = []
    for commit in history.commits:
        ids = [UUID(int=1000 * commit.last + i) for i in range(commit.last - commit.first)]
        ids.append(commit.commit_id)
        for place, own in enumerate(ids):
            parent = commit.parent if place == 0 else ids[place - 1]
            at = commit.first + place
            commits.append(replace(commit, commit_id=own, parent=parent, first=at, last=at))
    history = altered(history, lambda each: each)
    history.commits = commits
    return history


def judged(told: Told, **options: Any) -> PlanTally:
    return check_plans(*told, **options)


def with_budget(least: int) -> Altered:
    def alter(change: Change) -> Change:
        if change.kind != "PodDisruptionBudget":
            return change
        body = msgspec.json.decode(change.body)
        body["spec"]["minAvailable"] = least
        return replace(change, body=msgspec.json.encode(body))

    return alter


def beside_another(change: Change) -> Change:
    """The replaced database is put where another one is, which its rule forbids."""
    if (change.name, change.verb) != ("db-9", "Put"):
        return change
    body = msgspec.json.decode(change.body)
    body["spec"]["nodeName"] = "n2"
    return replace(change, body=msgspec.json.encode(body), node_name="n2")


async def test_plans_that_race_are_judged_by_budgets_rules_and_whether_they_are_whole() -> None:
    history, calls = await right()
    tally = judged((history, calls))
    assert tally.violations == []
    assert tally.steps["Remove"] == 2
    assert tally.steps["Place"] == 2
    assert tally.steps["Drain"] > 0

    assert judged((altered(history, with_budget(8)), calls)).budgets
    assert any(
        "may not go" in each for each in judged((altered(history, beside_another), calls)).rules
    )
    gone = next(each for each in calls[0].steps)
    assert any("has to stay" in each for each in judged((history, calls), staying=[gone]).rules)

    halves = judged((torn(history), calls)).half_done
    assert any("did not delete" in each for each in halves)
    assert any("drain-n4" in each for each in halves)
    refused = [calls[0], msgspec.structs.replace(calls[1], outcome="Conflict")]
    assert any("was refused" in each for each in judged((history, refused)).half_done)
    others = [msgspec.structs.replace(calls[0], steps=("web-0", "web-0x")), calls[1]]
    assert any("are marked" in each for each in judged((history, others)).half_done)
    assert any("nobody was told" in each for each in judged((history, calls[1:])).half_done)
    lost = [*calls, PlanCall(number=2, placed=("db-10",), outcome="Committed", revision=3)]
    assert any("not in the log" in each for each in judged((history, lost)).half_done)
