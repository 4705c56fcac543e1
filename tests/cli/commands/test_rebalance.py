"""`moorage rebalance`: what it sends, and what it tells of moves."""

import httpx

from tests.cli.commands.test_cordon_and_drain import events
from tests.cli.conftest import CLUSTER

PATH = f"{CLUSTER}/plans/rebalance-shop"
STEP = {"action": "Evict", "namespace": "shop", "name": "web-0", "from": "n1", "to": "n2"}
DONE = "2 of 3 pods moved as planned, 1 came elsewhere, as many moved as may"
OBJECTIVES = [{"name": "Skew", "before": 4, "now": 0}]


def plan(goal=None, **status):
    spec = {"goal": {"type": "Rebalance", "namespace": "shop", **(goal or {})}}
    return {"kind": "Plan", "metadata": {"name": "rebalance-shop"}, "spec": spec, "status": status}


def measured(**values):
    return [{"objective": name, "value": value} for name, value in values.items()]


def test_a_plan_only_tells_the_waves_and_what_they_are_good_for(moorage, stub):
    told = {
        "complete": True,
        "steps": [{**STEP, "wave": 1, "reason": "it is better placed there"}],
        "unplaced": [],
        "before": {"objectives": measured(Violations=1, Skew=4)},
        "after": {"objectives": measured(Violations=0, Skew=0)},
    }
    stub.on("POST", f"{CLUSTER}/plans", told)
    options = ("--objective", "violations", "--objective", "skew", "--protect", "app=db")
    ended = moorage("rebalance", "-n", "shop", "-l", "app=web", "--plan-only", *options)
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[1][:4] == ["1", "shop/web-0", "n1", "n2"]
    assert lines[-2:] == [["Violations", "1", "0"], ["Skew", "4", "0"]]
    assert stub.sent() == {
        "goal": {
            "type": "Rebalance",
            "namespace": "shop",
            "selector": {"matchLabels": {"app": "web"}},
            "objectives": ["Violations", "Skew"],
        },
        "bounds": {"protect": {"selector": {"matchLabels": {"app": "db"}}}},
        "explain": "Summary",
    }


def test_the_plan_is_followed_to_its_end(moorage, stub):
    running = plan(phase="Running", evicted=2, leaving=2)
    counts = {"evicted": 3, "moved": 2, "elsewhere": 1}
    ended = plan(phase="Succeeded", reason="MovesMax", objectives=OBJECTIVES, **counts)
    stub.on("GET", PATH, httpx.Response(404, json={"code": "NotFound"}), plan(), ended)
    stub.on("PUT", PATH, plan())
    stub.on("GET", CLUSTER, {"name": "default", "revision": 7})
    stub.on("GET", f"{CLUSTER}/watch", events(running, ended))
    told = moorage("rebalance", "-n", "shop", "--moves-max", "3", "--protect-priority", "9")
    assert told.out.splitlines()[:2] == [
        "plan/rebalance-shop moves pods",
        f"plan/rebalance-shop has succeeded: {DONE}",
    ]
    assert told.out.splitlines()[-1].split() == ["Skew", "4", "0"]
    put = next(number for number, each in enumerate(stub.requests) if each.method == "PUT")
    spec = stub.sent(put)["spec"]
    assert spec["goal"] == {"type": "Rebalance", "namespace": "shop", "movesMax": 3}
    assert spec["bounds"] == {"protect": {"priority": 9}}


def test_a_plan_that_runs_is_gone_on_with(moorage, stub):
    stub.on("GET", PATH, plan(phase="Running"))
    stub.on("PUT", PATH, plan())
    told = moorage("rebalance", "-n", "shop", "--no-wait")
    assert told.out == "plan/rebalance-shop runs already\n"
