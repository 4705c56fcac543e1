"""Messages name what is in other namespaces in references alone, and references tell a tenant of nobody else's."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, strategies as st

import service
from service.api.auth.redaction import OTHER, redact_body, redact_explanation, redact_placement
from service.scheduler.decide.status.pod_conditions import reasons_in
from service.scheduler.decide.status.references import (
    pod_named,
    reference,
    without_references,
)
from service.scheduler.protocol.intents import ExplainPod
from tests.builders import Manifest, PodBuilder, node, pod
from tests.scheduler.replica.test_quotas import quota
from tests.scheduler.world import World, world

SECRET = "hush"
"""It is in each name, label and selector of the other tenant, and nowhere else."""
BANK = f"{SECRET}-bank"
SHOP = frozenset({"shop"})

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
WORDS = st.text(st.characters(exclude_characters="<>"), max_size=30)


def shown(message: str, *namespaces: str) -> str:
    return without_references(message, set(namespaces).__contains__, lambda kind: f"[{kind}]")


@given(before=WORDS, after=WORDS, namespace=NAMES, name=NAMES, about=st.text(max_size=40))
@example("", "", "a", "b", "0/3 nodes: <Pod c/d: x> and > <")
def test_a_reference_in_whatever_words_is_left_out_with_all_that_it_says(
    before: str, after: str, namespace: str, name: str, about: str
) -> None:
    made = f"{before}{reference('Pod', namespace, name, about)}{after}"
    assert shown(made) == f"{before}[Pod]{after}"
    assert shown(made, namespace) == made


@given(before=WORDS, after=WORDS, namespace=NAMES, name=NAMES, told_in=st.sets(NAMES, min_size=1))
def test_a_pod_is_named_in_plain_words_only_where_it_is_told_to_its_own_namespace_alone(
    before: str, after: str, namespace: str, name: str, told_in: set[str]
) -> None:
    assert pod_named(namespace, name, {namespace}) == f"{namespace}/{name}"
    several = {namespace, *told_in}
    for others in (told_in - {namespace}, several):
        if others != {namespace}:
            made = before + pod_named(namespace, name, others) + after
            assert shown(made) == f"{before}[Pod]{after}"


def test_what_a_reference_says_does_not_count_nodes() -> None:
    """Or each change of a count would be another reason."""

    def told(name: str, counted: str) -> frozenset[str]:
        about = f"0/{counted} nodes are available: {counted} Insufficient cpu, 1 Too many pods."
        return reasons_in(f"the group of a/b fails at {reference('Pod', 'c', name, about)}")

    assert told("d", "3") == told("d", "5")
    assert told("d", "3") != told("e", "3")


# Where messages are made


def names_joined(source: str) -> Iterator[int]:
    """The lines where something is put before a slash, and something behind it."""
    for each in ast.walk(ast.parse(source)):
        match each:
            case ast.JoinedStr(values=values):
                if "}/{" in "".join(map(kind_of_part, values)):
                    yield each.lineno
            case ast.Call(func=ast.Attribute(value=ast.Constant(value="/"), attr="join")):
                yield each.lineno


def kind_of_part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


OWN_NAMES = {
    "engine/optimize/moves.py": "the pod's own name, which is hashed",
    "engine/cluster.py": "a claim of the pod's own that is still to be made",
    "engine/placing/placement.py": "the pod's own name, which is hashed",
    "engine/plugins/volume_binding.py": "the pod's own name, and its claim's",
    "engine/preemption/search.py": "the pod's own name, which is hashed",
    "engine/integrity/recount.py": "what a recount found, told to the operator's log alone",
    "engine/state/pods/importance.py": "a name that is compared, and told to nobody",
    "engine/state/devices/pod_devices.py": "the pod's own name, and its claims'",
    "engine/state/volumes/volume_table.py": "the pod's own name, and a claim's, which is counted with others",
    "scheduler/decide/claims/device_claims.py": "the pod's own name, and a pod's in the claim's namespace",
    "scheduler/decide/status/pod_conditions.py": "the pod that the event is about",
    "scheduler/decide/placing/pod_placement.py": "pods that the request itself names",
    "scheduler/decide/placing/group_reservations.py": "the group that the pod itself names",
    "scheduler/decide/evicting/minimal_evictions.py": "the owner of a rule in the victim's own namespace",
    "scheduler/plans/commit_plan.py": "pods that the request itself names or selects",
    "scheduler/plans/replace/replacement.py": "the pods that the request itself names",
    "scheduler/decide/status/references.py": "references, and names in one's own namespace",
    "scheduler/decide/object_writes.py": "the object that the request itself names",
    "scheduler/decide/claims/volume_bindings.py": "the pod's own name, and a pod's in the claim's namespace",
    "scheduler/multi_cluster/cluster_bids.py": "a pod that the request itself names",
    "scheduler/verification/claim_conflicts.py": "findings, told to who reads the whole database",
    "scheduler/verification/overcommitted_nodes.py": "findings, told to who reads the whole database",
    "scheduler/verification/object_checks.py": "findings, told to who reads the whole database",
}
"""Where names are put together but in references, and whose they are."""


def test_nothing_but_references_puts_names_of_objects_together() -> None:
    root = Path(service.__file__).parent
    files = [each for part in ("engine", "scheduler") for each in (root / part).rglob("*.py")]
    found = {
        str(each.relative_to(root))
        for each in files
        if any(names_joined(each.read_text(encoding="utf-8")))
    }
    assert found == OWN_NAMES.keys()


# What a group of two tenants is told


def shops(name: str) -> PodBuilder:
    return pod(name, "shop").request(cpu="1")


def banks() -> PodBuilder:
    return pod(f"{SECRET}-failing", BANK).request(cpu="1")


def with_spec(manifest: PodBuilder, **fields: Any) -> Manifest:
    return {"kind": "Pod", **manifest, "spec": manifest["spec"] | fields}


FAILING: dict[str, Callable[[], Manifest]] = {
    "no node": lambda: banks().node_selector(disk="none"),
    "quota": lambda: banks().request(cpu="3"),
    "gate": lambda: with_spec(banks(), schedulingGates=[{"name": f"{SECRET}.example/gate"}]),
    "another scheduler": lambda: with_spec(banks(), schedulerName=f"{SECRET}-scheduler"),
    "no PodGroup": lambda: banks().label({"scheduling.x-k8s.io/pod-group": f"{SECRET}-gang"}),
}


async def told_to_shop(w: World) -> list[bytes]:
    """All that was ever stored in the shop's namespace, with its events, as somebody sees it who reads there alone."""
    changes = [each for each in w.log() if each.namespace == "shop"]
    events = await w.store.events.list(1, limit=1_000)
    return [
        *(redact_body(SHOP, each.kind, each.body) for each in changes),
        *(
            redact_body(SHOP, "Event", msgspec.json.encode({"message": each.event.message}))
            for each in events.rows
            if each.event.namespace == "shop"
        ),
    ]


@pytest.mark.parametrize("bank_first", [True, False])
@pytest.mark.parametrize("why", FAILING)
async def test_no_member_of_a_group_tells_its_readers_of_those_of_another_tenant(
    why: str, *, bank_first: bool
) -> None:
    async with world() as w:
        await w.apply(node("n1"), quota(f"{SECRET}-quota", BANK, hard={"requests.cpu": "2"}))
        members = [shops("member"), shops("second"), FAILING[why]()]
        answer = await w.place(
            *(members[::-1] if bank_first else members), all_or_nothing=True, queue=True
        )
        for _ in range(3):
            await w.pass_time(20)
            await w.apply(node("n1").label(changed=str(w.clock.monotonic())))
        told = [
            redact_explanation(
                SHOP, (await w.ask(ExplainPod(namespace="shop", name=name))).explanation
            ).message
            for name in ("member", "second")
        ]
        results = redact_placement(SHOP, answer).results
        told += [each.message for each in results if each.namespace == "shop"]
        texts = [*(each or "" for each in told), *map(bytes.decode, await told_to_shop(w))]
    assert any(OTHER in each for each in texts)
    assert [each for each in texts if SECRET in each] == []


async def test_who_may_read_both_is_told_which_member_failed_and_why() -> None:
    async with world() as w:
        await w.apply(node("n1"))
        await w.place(FAILING["no node"](), shops("member"), all_or_nothing=True, queue=True)
        await w.pass_time(20)
        stored = await w.stored("Pod", "shop", "member")
    assert stored is not None
    [condition] = stored["status"]["conditions"]
    name = f"<Pod {BANK}/{SECRET}-failing"
    lacks = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert condition["message"] == f"the group of {name}> fails at {name}: {lacks}>"


def test_a_message_that_a_client_has_sent_back_is_read_however_its_json_is_written() -> None:
    condition = {"message": f"x fails at {reference('Pod', BANK, SECRET)}"}
    plain = msgspec.json.encode({"status": {"conditions": [condition]}})
    for written in (rb"\u003c", rb"\u003C"):
        assert SECRET.encode() not in redact_body(SHOP, "Pod", plain.replace(b"<", written))
