"""Conformance vectors: what a case asks, what it expects, and where an answer differs.

A case is one JSON object: a cluster, an incoming pod, and what kube-scheduler's own code answered
(`expect`). A trace is a cluster and steps that change it; some of the steps ask. This module does
no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.model.cluster.versions.known import UNNAMED
from service.model.core.kind import KindSpec
from service.model.registry.kinds import DECLARED_KINDS

Vector = Mapping[str, Any]

NO_DAEMONS: Mapping[str, Any] = {"daemonNamespaces": []}
NO_RESTRICTION: Mapping[str, Any] = {"restrictAllNamespacesAntiAffinity": False}
"""Settings whose defaults are rules of Moorage's own, which Kubernetes does not have."""

DAEMONS = "kube-system"
"""The namespace in which Moorage takes pods for daemons by default."""
SINGLE_NODES = "kubernetes.io/hostname"
"""The topology key that Moorage allows by default for anti-affinity against all namespaces."""

BY_DOCUMENTATION: Mapping[str, Any] = {"kubernetesRules": "Documented"}
"""The setting with which documented rules count where kube-scheduler's code has others."""

DOCUMENTED = "-documented"
"""How the names of vectors and groups end that are compared with documented rules."""

READER_NOTES = frozenset({"preAdmission"})
"""Entries of a vector's config that are for its reader, and are no settings."""

ARGUMENTS: Mapping[str, str] = {
    "defaultSpread": "defaultTopologySpread",
    "defaultConstraints": "defaultTopologySpreadConstraints",
}
"""Entries of a vector's config that are arguments of plugins, with the names of our settings."""

AS_GIVEN = {"nodeConditions": "Ignore"}
"""The setting with which nodes have the taints of the vector: kube-scheduler reads no conditions."""

KINDS_BY_PLURAL: Mapping[str, KindSpec] = {each.plural: each for each in DECLARED_KINDS.values()}

OURS_ALONE = frozenset({"semantics", "kubernetes"})
"""Fields of an explanation that kube-scheduler's answer does not have."""

OF_PREEMPTION = frozenset({"preemption", "why", "fullMessage"})
"""Fields of an expected answer that an explanation does not have: the result beside it has them."""

PER_PLUGIN = ("filters", "unresolvable", "scores")
STEP_FIELDS = ("feasible", "best", "total", "message")

ABSENT = "(absent)"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One place where an answer is not the expected one."""

    field: str
    plugin: str | None = None
    node: str | None = None
    expected: object
    got: object

    def describe(self) -> str:
        """Describe the difference in one line."""
        place = " ".join(part for part in (self.field, self.plugin, self.node) if part)
        return f"{place}: expected {self.expected!r}, got {self.got!r}"


def is_trace(vector: Vector) -> bool:
    """Whether a vector is a trace and not a case."""
    return "steps" in vector


def group_of(vector: Vector) -> str:
    """Return the group that a vector is counted under: its name without the running number."""
    if is_trace(vector):
        return "traces"
    name = str(vector["name"])
    ending = DOCUMENTED if name.endswith(DOCUMENTED) else ""
    if vector.get("source") == "seed":
        return f"scenarios{ending}"
    stem, _, number = name.removesuffix(ending).rpartition("-")
    return f"{stem}{ending}" if number.isdigit() else name


def settings_of(vector: Vector) -> dict[str, Any]:
    """Return the cluster configuration under which kube-scheduler's answers are expected.

    What the vector does not set itself has its default, as far as Kubernetes has the same rules.
    """
    given = {
        ARGUMENTS.get(name, name): value
        for name, value in vector["config"].items()
        if name not in READER_NOTES
    }
    return {**AS_GIVEN, "kubernetes": UNNAMED, **given, **departures_of(vector)}


def departures_of(vector: Vector) -> dict[str, Any]:
    """Return the settings that turn off those rules of Moorage's own that concern a vector."""
    departures: dict[str, Any] = {}
    if _keeps_daemons_apart(vector):
        departures |= NO_DAEMONS
    if any(_is_wide(term) for pod in _pods_of(vector) for term in _anti_affinity_of(pod)):
        departures |= NO_RESTRICTION
    return departures


def _keeps_daemons_apart(vector: Vector) -> bool:
    """Whether required anti-affinity may be about a daemon and about a pod that is none."""
    pods = _pods_of(vector)
    if {_is_daemon(pod) for pod in pods} != {True, False}:
        return False
    return any(_reaches_across(term, pod) for pod in pods for term in _anti_affinity_of(pod))


def _reaches_across(term: Vector, owner: Vector) -> bool:
    listed = set(term.get("namespaces") or ())
    others = listed - {DAEMONS} if _is_daemon(owner) else listed & {DAEMONS}
    return bool(others) or term.get("namespaceSelector") is not None


def _is_wide(term: Vector) -> bool:
    """Whether a term may apply to all namespaces: one without labels is selected, too."""
    selector = term.get("namespaceSelector")
    if selector is None or term["topologyKey"] == SINGLE_NODES:
        return False
    asked = selector.get("matchExpressions") or ()
    absent = all(each["operator"] in ("NotIn", "DoesNotExist") for each in asked)
    return absent and not selector.get("matchLabels")


def _pods_of(vector: Vector) -> list[Vector]:
    """Return all pods that a vector names, those of a trace's steps included."""
    steps = (step["pod"] for step in vector.get("steps", ()) if "pod" in step)
    asked = [vector["pod"]] if "pod" in vector else []
    return [*vector.get("pods", ()), *asked, *steps]


def _is_daemon(pod: Vector) -> bool:
    return bool(pod["metadata"].get("namespace") == DAEMONS)


def _anti_affinity_of(pod: Vector) -> Iterator[Vector]:
    """Yield the required terms of a pod's anti-affinity."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for variant, terms in (affinity.get("podAntiAffinity") or {}).items():
        if variant.startswith("required"):
            yield from terms or ()


def objects_of(vector: Vector) -> list[dict[str, Any]]:
    """Return the objects of a vector besides nodes, namespaces and pods, each with its kind."""
    return [
        {"apiVersion": declared.api_version, "kind": declared.kind, **item}
        for name, items in vector.items()
        if (declared := KINDS_BY_PLURAL.get(name.lower())) is not None
        for item in items
    ]


def by_documentation(vectors: Iterable[Vector]) -> Iterator[Vector]:
    """Yield the cases whose answer is another one by Kubernetes' documentation, with that answer."""
    for case in vectors:
        if "expectDocumented" in case:
            yield {
                **case,
                "name": f"{case['name']}{DOCUMENTED}",
                "config": {**case["config"], **BY_DOCUMENTATION},
                "expect": case["expectDocumented"],
            }


def asks_for_preemption(case: Vector) -> bool:
    """Whether a case is about whom kube-scheduler would evict."""
    return not OF_PREEMPTION.isdisjoint(case["expect"])


def request_of(case: Vector) -> dict[str, Any]:
    """Make the body of the simulation that a case stands for."""
    parts = {name: case[name] for name in ("namespaces", "nodes", "pods", "pod")}
    if asks_for_preemption(case):
        parts["preemption"] = "Propose"
    return {"config": settings_of(case), "objects": objects_of(case), **parts}


def result_differences(case: Vector, result: Mapping[str, Any]) -> list[Difference]:
    """Compare the result of a simulation with what a case expects."""
    expected = case["expect"]
    if not asks_for_preemption(case):
        return differences(expected, result["explanation"])
    explained = {name: value for name, value in expected.items() if name not in OF_PREEMPTION}
    return [
        *differences(explained, result["explanation"]),
        *_preemption_differences(expected, result),
    ]


def _preemption_differences(
    expected: Mapping[str, Any], result: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare the victims on every node where preemption helps, the chosen node and the message."""
    wanted, proposal = expected["preemption"] or {}, result.get("preemption") or {}
    chosen, node_name = wanted.get("chosen") or [None], proposal.get("nodeName")
    if node_name not in chosen:
        yield Difference(field="chosen", expected=chosen, got=node_name)
    message, wanted_message = result.get("message"), full_message(expected, node_name)
    if message != wanted_message:
        yield Difference(field="message", expected=wanted_message, got=message)
    candidates = {
        name: _as_proposed(victims) for name, victims in wanted.get("candidates", {}).items()
    }
    yield from _by_node("candidates", "preemption", candidates, proposal.get("candidates", {}))


def full_message(expected: Mapping[str, Any], node_name: str | None) -> object:
    """Return the message that a case expects; of several equally good nodes it may name any."""
    message: str = expected["fullMessage"]
    chosen = (expected["preemption"] or {}).get("chosen", [])
    if node_name not in chosen:
        return message
    return message.replace(f" on node {chosen[0]}, ", f" on node {node_name}, ")


def _as_proposed(victims: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vector's victims, whose names are `namespace/name`, in the form of an answer."""
    parted = [each.partition("/") for each in victims["victims"]]
    return {
        "victims": [{"namespace": namespace, "name": name} for namespace, _, name in parted],
        "budgetViolations": victims["pdbViolations"],
    }


def differences(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Difference]:
    """Compare a full explanation with what a case expects, plugin by plugin."""
    found: list[Difference] = []
    for field in sorted(expected.keys() | answer.keys() - OURS_ALONE):
        wanted, got = expected.get(field, ABSENT), answer.get(field, ABSENT)
        if wanted == got:
            continue
        if field in PER_PLUGIN and ABSENT not in (wanted, got):
            found += _by_plugin(field, wanted, got)
        else:
            found.append(Difference(field=field, expected=wanted, got=got))
    return found


def step_differences(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Difference]:
    """Compare a full explanation with what a step of a trace expects."""
    return [
        Difference(field=field, expected=expected.get(field), got=answer.get(field))
        for field in STEP_FIELDS
        if expected.get(field) != answer.get(field)
    ]


def _by_plugin(
    field: str, wanted: Mapping[str, Any], got: Mapping[str, Any]
) -> Iterator[Difference]:
    for plugin in sorted(wanted.keys() | got.keys()):
        yield from _by_node(field, plugin, wanted.get(plugin, ABSENT), got.get(plugin, ABSENT))


def _by_node(field: str, plugin: str, wanted: Any, got: Any) -> Iterator[Difference]:
    if wanted == got:
        return
    if not (isinstance(wanted, Mapping) and isinstance(got, Mapping)):
        yield Difference(field=field, plugin=plugin, expected=wanted, got=got)
        return
    for node in sorted(wanted.keys() | got.keys()):
        pair: Sequence[object] = (wanted.get(node, ABSENT), got.get(node, ABSENT))
        if pair[0] != pair[1]:
            yield Difference(field=field, plugin=plugin, node=node, expected=pair[0], got=pair[1])
