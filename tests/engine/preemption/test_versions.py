"""What preemption decides and reports otherwise in later versions of Kubernetes."""

import pytest

from service.engine import NoPreemption, Refusal, place, preempt
from tests.builders import matching, node, pod
from tests.engine import objects
from tests.engine.scene import Scene


def full(kubernetes: str) -> Scene:
    return Scene(node("n").allocatable(cpu="2", memory="1Gi", pods="9"), kubernetes=kubernetes)


def budget(name: str, allowed: int, **labels: str):
    return objects.budget(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": matching(**labels)},
            "status": {"disruptionsAllowed": allowed},
        }
    )


@pytest.mark.parametrize(("kubernetes", "violations"), [("1.35", 2), ("1.36", 2), ("1.37", 1)])
def test_a_victim_beyond_one_budget_may_spare_those_that_follow(
    kubernetes: str, violations: int
) -> None:
    scene = full(kubernetes)
    scene.put(pod("both").label(app="db", tier="data").request(cpu="1").priority(2).on("n"))
    scene.put(pod("one").label(tier="data").request(cpu="1").priority(1).on("n"))
    budgets = [budget("b", 1, tier="data"), budget("a", 0, app="db")]
    asked = objects.pod(pod("p").request(cpu="2").priority(9), incoming=True)
    found = preempt(scene.engine, asked, budgets)
    assert not isinstance(found, NoPreemption)
    assert found.victims.violations == violations


@pytest.mark.parametrize(
    ("kubernetes", "helped", "unhelped"),
    [
        ("1.36", "", " no new claims to deallocate, preemption: "),
        (
            "1.37",
            " preemption: found a potential placement for pod on node n, preempting 1 victims",
            " preemption: ",
        ),
    ],
)
def test_the_message_says_what_preemption_does(kubernetes: str, helped: str, unhelped: str) -> None:
    scene = full(kubernetes)
    scene.put(pod("low").request(cpu="2").on("n"))
    refused = "0/1 nodes are available: 1 Insufficient cpu."
    for priority, after in ((9, refused + helped), (0, refused + unhelped)):
        asked = objects.pod(pod("p").request(cpu="2").priority(priority), incoming=True)
        refusal = place(scene.engine, asked)
        assert isinstance(refusal, Refusal)
        assert preempt(scene.engine, asked).message_after(refusal.message).startswith(after)
