"""What placements answer and what they store."""

import msgspec
import pytest

from service.model.core.errors import InvalidManifest, NotFound, PodDiffers
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PodRef
from service.scheduler.simulation import Simulation
from tests.builders import matching, namespace, node, pod
from tests.scheduler.world import world


async def test_a_placed_pod_is_stored_with_its_node_and_condition():
    async with world() as w:
        await w.apply(node("n1"))
        answer = await w.place(pod("a"))
        (result,) = answer.results
        assert (result.outcome, result.node_name, answer.committed) == ("Placed", "n1", True)
        assert answer.revision == await w.head_revision()
        stored = await w.stored("Pod", "default", "a")
        assert stored["spec"]["nodeName"] == "n1"
        assert stored["metadata"]["uid"] == result.uid
        (condition,) = stored["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


async def test_asking_again_is_already_placed_and_makes_no_revision():
    async with world() as w:
        await w.apply(node("n1"))
        await w.place(pod("a").label(app="x"))
        before = await w.head_revision()
        answer = await w.place(pod("a").label(app="x"))
        assert answer.results[0].outcome == "AlreadyPlaced"
        assert answer.results[0].node_name == "n1"
        assert answer.committed is False
        assert await w.head_revision() == before


async def test_a_different_pod_of_the_same_name_refuses_the_whole_request():
    async with world() as w:
        await w.apply(node("n1"))
        await w.place(pod("a"))
        before = await w.head_revision()
        with pytest.raises(PodDiffers, match=r"pods\[1\]"):
            await w.place(pod("b"), pod("a").label(app="other"))
        assert await w.head_revision() == before


async def test_rejected_pods_leave_nothing_queued_ones_wait_with_the_reason():
    async with world() as w:
        await w.apply(node("n1"))
        big = pod("big").request(cpu="100")
        rejected = await w.place(big)
        assert rejected.results[0].outcome == "Unschedulable"
        assert "Insufficient cpu" in (rejected.results[0].message or "")
        assert rejected.committed is False
        assert await w.stored("Pod", "default", "big") is None
        queued = await w.place(big, queue=True)
        assert queued.results[0].outcome == "Queued"
        stored = await w.stored("Pod", "default", "big")
        (condition,) = stored["status"]["conditions"]
        assert condition["status"] == "False"
        assert condition["reason"] == "Unschedulable"
        assert condition["message"] == queued.results[0].message


async def test_p18_a_pending_pod_is_not_rewritten_while_the_reasons_stay():
    async with world() as w:
        await w.apply(node("n1"))
        big = pod("big").request(cpu="100")
        await w.place(big, queue=True)
        before = await w.head_revision()
        again = await w.place(big, queue=True)
        assert again.results[0].outcome == "Queued"
        await w.apply(node("n2"))
        await w.place(big, queue=True)
        # One revision for the node; another count of nodes is no other reason.
        assert await w.head_revision() == before + 1
        await w.apply(node("n3").cordon())
        await w.place(big, queue=True)
        assert await w.head_revision() == before + 3


async def test_a_queued_pod_is_placed_by_reference_once_there_is_room():
    async with world() as w:
        await w.place(pod("a"), queue=True)
        ref = PlacePods(pod_refs=(PodRef(name="a"),), path="podRefs")
        assert (await w.ask(ref)).results[0].outcome == "Unschedulable"
        await w.apply(node("n1"))
        answer = await w.ask(ref)
        assert answer.results[0].node_name == "n1"
        stored = await w.stored("Pod", "default", "a")
        assert [c["status"] for c in stored["status"]["conditions"]] == ["True"]


async def test_an_unknown_reference_refuses_the_whole_request():
    async with world() as w:
        await w.place(pod("a"), queue=True)
        refs = (PodRef(name="a"), PodRef(name="none"))
        with pytest.raises(NotFound):
            await w.ask(PlacePods(pod_refs=refs, path="podRefs"))


async def test_the_same_pod_twice_is_invalid():
    async with world() as w:
        with pytest.raises(InvalidManifest) as caught:
            await w.place(pod("a"), pod("b"), pod("a"))
        assert [error.field for error in caught.value.errors] == ["pods[2]"]


async def test_a_dry_run_takes_the_node_of_the_real_call_and_stores_nothing():
    async with world() as w:
        await w.apply(*(node(f"n{i}") for i in range(5)))
        pods = [pod(f"p{i}").require_anti_affinity("none", matching(a="b")) for i in range(5)]
        before = await w.head_revision()
        dry = await w.place(*pods, dry_run=True)
        assert await w.head_revision() == before
        assert dry.committed is False
        assert [each.uid for each in dry.results] == [None] * 5
        real = await w.place(*pods)
        assert [e.node_name for e in dry.results] == [e.node_name for e in real.results]
        assert [e.score for e in dry.results] == [e.score for e in real.results]


async def test_pods_of_one_request_see_each_other():
    async with world() as w:
        await w.apply(*(node(f"n{i}").label(host=f"n{i}") for i in range(3)))
        one_each = [
            pod(f"p{i}").label(app="x").require_anti_affinity("host", matching(app="x"))
            for i in range(4)
        ]
        answer = await w.place(*one_each)
        nodes = [each.node_name for each in answer.results]
        assert set(nodes[:3]) == {"n0", "n1", "n2"}
        assert answer.results[3].outcome == "Unschedulable"


async def test_an_unknown_scheduler_is_denied_and_names_the_known_ones():
    async with world() as w:
        await w.apply(node("n1"))
        strange = pod("a")
        strange["spec"]["schedulerName"] = "mine"
        (result,) = (await w.place(strange, queue=True)).results
        assert (result.outcome, result.reason) == ("Denied", "UnknownScheduler")
        assert "default-scheduler" in (result.message or "")
        assert await w.stored("Pod", "default", "a") is None


async def test_gated_pods_wait():
    async with world() as w:
        await w.apply(node("n1"))
        gated = pod("a")
        gated["spec"]["schedulingGates"] = [{"name": "quota"}]
        assert (await w.place(gated)).results[0].outcome == "Unschedulable"
        assert (await w.place(gated, queue=True)).results[0].outcome == "Queued"
        stored = await w.stored("Pod", "default", "a")
        assert stored["status"]["conditions"][0]["reason"] == "SchedulingGated"


async def test_anti_affinity_against_all_namespaces_is_denied_but_for_node_keys():
    async with world() as w:
        await w.apply(node("n1").label({"kubernetes.io/hostname": "n1"}).label(zone="a"))
        everywhere = {"namespaceSelector": {}}
        broad = pod("a").require_anti_affinity("zone", matching(x="y"), **everywhere)
        narrow = pod("b").require_anti_affinity(
            "kubernetes.io/hostname", matching(x="y"), **everywhere
        )
        answer = await w.place(broad, narrow)
        assert answer.results[0].outcome == "Denied"
        assert answer.results[0].reason == "AntiAffinityTooBroad"
        assert answer.results[1].outcome == "Placed"


async def test_explanations_belong_to_the_state_before_the_pod():
    async with world() as w:
        await w.apply(node("n1"), node("n2").cordon())
        (full,) = (await w.place(pod("a"), explain="Full")).results
        assert full.explanation.feasible == ["n1"]
        assert "NodeUnschedulable" in full.explanation.filters
        (again,) = (await w.place(pod("a"), explain="Full")).results
        assert again.outcome == "AlreadyPlaced"
        assert again.explanation.feasible == ["n1"]
        (summary,) = (await w.place(pod("b"), explain="Summary")).results
        assert (summary.explanation.feasible_count, summary.explanation.nodes) == (1, 2)


async def test_simulations_explain_every_pod_and_store_nothing():
    async with world() as w:
        gated = pod("gated")
        gated["spec"]["schedulingGates"] = [{"name": "quota"}]
        broad = pod("broad").require_anti_affinity("z", matching(a="b"), namespaceSelector={})
        before = await w.head_revision()
        simulation = Simulation(
            nodes=w.parsed(node("n1").allocatable(cpu="1"), node("n2").cordon()),
            pods=w.parsed(pod("there").on("n1").request(cpu="600m")),
            place=w.placing(
                pod("first").request(cpu="400m"), pod("second").request(cpu="1m"), gated, broad
            ).pods,
        )
        answer = await w.schedulers[0].simulate(simulation)
        assert [each.outcome for each in answer.results] == [
            "Placed",
            "Unschedulable",
            "Unschedulable",
            "Denied",
        ]
        assert answer.results[0].explanation.feasible == ["n1"]
        assert answer.results[1].message == answer.results[1].explanation.message
        assert all(each.explanation is not None for each in answer.results)
        grouped = msgspec.structs.replace(simulation, all_or_nothing=True)
        refused = await w.schedulers[0].simulate(grouped)
        assert all(each.explanation is not None for each in refused.results)
        assert await w.head_revision() == before


async def test_a_group_is_placed_whole_or_not_at_all():
    async with world() as w:
        await w.apply(node("n1").label(host="n1"), node("n2").label(host="n2"))

        def members(n):
            return [
                pod(f"g{i}").label(app="g").require_anti_affinity("host", matching(app="g"))
                for i in range(n)
            ]

        before = await w.head_revision()
        refused = await w.place(*members(3), all_or_nothing=True)
        assert await w.head_revision() == before
        assert refused.committed is False
        outcomes = sorted(each.outcome for each in refused.results)
        assert outcomes == ["GroupRefused", "GroupRefused", "Unschedulable"]
        assert refused.group is not None
        assert refused.group.plugin == "InterPodAffinity"
        assert len(refused.group.failed) == 1
        placed = await w.place(*members(2), all_or_nothing=True)
        assert {each.node_name for each in placed.results} == {"n1", "n2"}
        grown = await w.place(*members(2), all_or_nothing=True)
        assert [each.outcome for each in grown.results] == ["AlreadyPlaced"] * 2


async def test_mutual_affinity_is_placed_as_a_group_only():
    async with world() as w:
        await w.apply(node("n1").label(zone="a"), node("n2").label(zone="b"))
        x = pod("x").label(app="x").require_affinity("zone", matching(app="y"))
        y = pod("y").label(app="y").require_affinity("zone", matching(app="x"))
        singly = await w.place(x, y)
        assert [each.outcome for each in singly.results] == ["Unschedulable"] * 2
        group = await w.place(x, y, all_or_nothing=True)
        assert len({each.node_name for each in group.results}) == 1


async def test_a_pod_in_a_namespace_that_was_never_stored_is_placed():
    async with world() as w:
        await w.apply(node("n1"), namespace("other"))
        assert (await w.place(pod("a", "never"))).results[0].outcome == "Placed"


async def test_a_wished_node_is_filtered_and_kept_while_the_pod_waits():
    async with world() as w:
        await w.apply(node("n1"))
        wished = pod("a").on("n2")
        assert (await w.place(wished, queue=True)).results[0].outcome == "Queued"
        await w.apply(node("n2"))
        answer = await w.place(wished, queue=True)
        assert answer.results[0].node_name == "n2"
