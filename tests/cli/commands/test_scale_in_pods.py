"""`moorage scale-in`: what it sends, and what it tells of those who go and of those who stay."""

from tests.cli.conftest import CLUSTER

STEP = {
    "action": "Delete",
    "namespace": "shop",
    "name": "web-3",
    "from": "node-1",
    "wave": 1,
    "reason": "the others are left best without it",
}
KEPT = {
    "namespace": "shop",
    "name": "web-0",
    "reason": "DisruptionBudget",
    "message": "The disruption budget web does not allow that it leaves.",
}
ASKED = ("scale-in", "-n", "shop", "-l", "app=web, tier==front", "--by", "1")


def plan(**fields):
    told = {"status": "Committed", "complete": True, "steps": [STEP], "unplaced": []}
    return {**told, "stepsTotal": 1, **fields}


def test_pods_go_in_one_commit(moorage, stub):
    stub.on("POST", f"{CLUSTER}/plan-commits", plan())
    ended = moorage(*ASKED, "--respect-budgets")
    assert ended.out == "shop/web-3 goes from node-1: the others are left best without it\n"
    assert ended.code == 0
    assert stub.sent() == {
        "goal": {
            "type": "Remove",
            "namespace": "shop",
            "selector": {"matchLabels": {"app": "web", "tier": "front"}},
            "count": 1,
        },
        "bounds": {"respectBudgets": True},
    }
    assert stub.requests[-1].headers["idempotency-key"]


def test_a_dry_run_is_a_plan(moorage, stub):
    stub.on("POST", f"{CLUSTER}/plans", plan(status="Planned"))
    assert moorage(*ASKED, "--dry-run").out.startswith("shop/web-3 would go from node-1")
    assert moorage(*ASKED, "--dry-run", "-o", "json").json["status"] == "Planned"


def test_if_not_all_can_go_none_does(moorage, stub):
    answer = plan(status="Planned", complete=False, unplaced=[KEPT])
    stub.on("POST", f"{CLUSTER}/plan-commits", answer)
    ended = moorage(*ASKED)
    assert ended.code == 1
    assert "shop/web-0 stays: The disruption budget web does not allow" in ended.out
    assert "Only 1 of the pods can go; nothing was done." in ended.err


def test_a_selector_is_pairs(moorage, stub):
    assert moorage("scale-in", "-l", "tier!=db", "--by", "1").code == 2
    assert moorage("scale-in", "-l", "app=web").code == 2
    assert stub.requests == []
