"""One pass over the log: every placement on the state that it extends, every answer on its own."""

from collections import defaultdict
from typing import Any

import msgspec

from service.model.log.commit import Change, CommitInfo
from tests.concurrency.checker.claims import WAITING_GROUP, Claims, waiting_members
from tests.concurrency.checker.evicting import EvictionCheck, concerns_evictions
from tests.concurrency.checker.gangs import Gangs, pod_group_of
from tests.concurrency.checker.history import Call, History, Key, Violation
from tests.concurrency.checker.node_lifecycle import DeletedNodesCheck, has_ended_with_its_node
from tests.concurrency.checker.state import State, objections, overcommitted
from tests.reference import evaluate_preemption
from tests.reference.preemption import UNDER_WAY, is_preempted
from tests.reference.resources import amounts
from tests.reference.view import Manifest, is_terminating, labels_of, nomination_of, priority_of

SCORES_CHECKED = 2
"""Plans of which the score is worked out again, for that is slow (A15)."""


class Replay:
    """`run` goes through the log once; afterwards `state` is that at its end."""

    def __init__(self, history: History, claims: Claims, *, placements_every: int = 1) -> None:
        self._every = placements_every
        self._history = history
        self._claims = claims
        self.state = State()
        self._gangs = Gangs(self.state)
        self._found: list[Violation] = []
        self._answers: defaultdict[int, list[tuple[Call, Any]]] = defaultdict(list)
        """Answers by the revision that they were decided on; of a placement, each result."""
        self._absences: defaultdict[Key, list[tuple[int, int | None]]] = defaultdict(list)
        """When each object got which revision; None: when it went."""
        self._scores_left = SCORES_CHECKED
        self._waiting: dict[str, list[Key]] = {}
        """The members of groups that wait, as they were when one of them got its node."""
        self._early: list[Change] = []
        """Members of a pod group that may not be where they are unless those after them come."""
        self._evictions = EvictionCheck(
            self.state,
            lambda message: self._report("A14", message),
            unseen=history.unseen,
            blur=history.blur,
            clocks_jump=history.clocks_jump,
            keeps_past=any(map(concerns_evictions, history.changes)),
            by_domains=any(call.asked.get("scope") == "Domains" for call in history.calls),
        )
        self._deleted_nodes = DeletedNodesCheck(
            self.state,
            lambda message: self._report("A20", message),
            clocks_jump=history.clocks_jump,
        )
        for call in history.calls:
            self._expect(call)

    def run(self) -> list[Violation]:
        self._check_answers()
        changes = self._history.changes
        for commit in self._history.commits:
            self._replay(commit, changes[commit.first - 1 : commit.last])
            self._evictions.settle(commit.at)
        if self._history.ended is not None:
            self._evictions.finish(self._history.ended)
            self._deleted_nodes.finish(self._history.ended)
        for call in self._history.calls:
            if call.outcome == "fail":
                self._check_refusal(call)
        return self._found

    def _expect(self, call: Call) -> None:
        if call.revision is None:
            return
        if call.action == "place":
            for result in _on_committed_ground(call):
                self._answers[result["plannedRevision"]].append((call, result))
        elif call.action == "delete":
            self._answers[call.revision - 1].append((call, None))
        else:
            self._answers[call.revision].append((call, None))

    def _replay(self, commit: CommitInfo, changes: list[Change]) -> None:
        groups: dict[int, list[Change]] = {}
        gangs: dict[str, list[Change]] = {}
        for change in changes:
            self._check_change(change)
            self._evictions.see(change, commit.at, changes)
            self._deleted_nodes.see(change, commit.at, changes)
            call = self._claims.get(change.revision)
            is_placement = self._is_placement(change)
            for told in self._gangs.see(change, is_placement=is_placement):
                self._report("A9", f"before revision {change.revision}: {told}")
            if is_placement and call is not None and call.action == "place":
                if call.asked["group"]:
                    groups.setdefault(call.number, []).append(change)
                else:
                    self._check_placement(change)
            elif is_placement and call is None:
                self._see_from_queue(change, gangs)
            self._apply(change)
            self._check_early(change)
            self._check_quota(change)
            self._check_emptied(change)
            if call is not None and call.number in groups and self._ends(call, change):
                self._check_group(call, groups.pop(call.number))
            self._check_capacity(change, is_placement=is_placement)
            self._check_gangs(change, gangs)
            self._check_answers()
        for told in self._gangs.end():
            self._report("A9", f"at revision {self.state.revision}: {told}")
        for number, members in groups.items():
            self._check_group(self._history.calls[number], members)

    def _check_gangs(self, change: Change, gangs: dict[str, list[Change]]) -> None:
        """Those that wait together get their nodes together: one directly after the other."""
        for name, members in list(gangs.items()):
            following = self._history.changes[change.revision : change.revision + 1]
            if any(tuple(each.key) in self._waiting[name] for each in following):
                continue
            self._check_members(gangs.pop(name))
            absent = [key for key in self._waiting[name] if self.state.node_of(key) is None]
            if absent:
                self._report("A9", f"{members[0].revision}: {absent} have no node, others have")

    def _see_from_queue(self, change: Change, gangs: dict[str, list[Change]]) -> None:
        """A pending pod gets a node by itself, or with all those that it waits with."""
        for key in self.state.of_kind(WAITING_GROUP):
            members = waiting_members(self.state.bodies[key][1])
            if tuple(change.key) in members:
                self._waiting[key[2]] = members
                gangs.setdefault(key[2], []).append(change)
                return
        self._check_placement(change)

    def _apply(self, change: Change) -> None:
        self.state.apply(change)
        present = change.revision if change.verb == "Put" else None
        self._absences[tuple(change.key)].append((change.revision, present))

    def _is_placement(self, change: Change) -> bool:
        if change.kind != "Pod" or change.verb == "Delete" or change.node_name is None:
            return False
        return self.state.node_of(tuple(change.key)) is None

    def _ends(self, call: Call, change: Change) -> bool:
        """Whether a call did no more after a change; notes of who waits may stand between."""
        rest = (
            each for each in self._history.changes[change.revision :] if each.kind != WAITING_GROUP
        )
        following = next(rest, None)
        claim = None if following is None else self._claims.get(following.revision)
        return claim is None or claim.number != call.number

    # Changes

    def _check_change(self, change: Change) -> None:
        before = self.state.bodies.get(tuple(change.key))
        if change.verb == "Delete" and before is None:
            self._report(
                "A3", f"revision {change.revision} deletes {change.key}, which is not there"
            )
        elif change.verb == "Delete" and before is not None and before[1] != change.body:
            self._report("A3", f"revision {change.revision} deletes another {change.key}")
        elif change.verb == "Put" and before is not None and before[1] == change.body:
            self._report("A7", f"revision {change.revision} changes nothing of {change.key}")
        if change.verb == "Put" and change.created != (before is None):
            self._report("A3", f"revision {change.revision} says created={change.created}")
        if change.kind == "Pod" and change.verb == "Put":
            self._check_move(change)
        call = self._claims.get(change.revision)
        wanted = call.asked.get("resource_version") if call is not None else None
        if wanted is not None and (before is None or str(before[0]) != wanted):
            self._report("A2", f"{call} replaced revision {before and before[0]}")

    def _check_emptied(self, change: Change) -> None:
        if (change.kind, change.verb) == ("Namespace", "Delete"):
            left = list(self.state.inside(change.name))
            if left:
                self._report("A6", f"revision {change.revision} deletes a namespace with {left}")

    def _check_quota(self, change: Change) -> None:
        """A pod that comes in finds room in each quota, others that came at the same time or not."""
        if change.kind == "Pod" and change.created:
            pod = self.state.pod(tuple(change.key))
            assert pod is not None
            for excess in self.state.quotas(change.namespace).excess(pod):
                self._report("A2", f"revision {change.revision} creates {change.name}: {excess}")

    def _check_move(self, change: Change) -> None:
        node_name = self.state.node_of(tuple(change.key))
        if node_name is not None and change.node_name != node_name:
            self._report("A2", f"revision {change.revision} moves {change.key} from {node_name}")

    def _check_placement(self, change: Change) -> None:
        if change.revision % self._every:
            return
        assert change.node_name is not None
        pod = msgspec.json.decode(change.body)
        broken = objections(self.state.view, pod, change.node_name)
        if broken and pod_group_of(change):
            self._early.append(change)
        elif broken:
            self._report("A2", self._told(change, broken))

    def _check_early(self, change: Change) -> None:
        """Members of a pod group are placed together: each on the state with all others (P10)."""
        following = self._history.changes[change.revision : change.revision + 1]
        if not self._early or any(
            self._is_placement(each) and pod_group_of(each) == pod_group_of(change)
            for each in following
        ):
            return
        self._check_members(self._early)
        self._early = []

    def _check_group(self, call: Call, members: list[Change]) -> None:
        """Whole or absent (A9), and each member in the state with all the others (P10)."""
        absent = [key for key in call.asked["pods"] if self.state.node_of(tuple(key)) is None]
        if absent:
            self._report("A9", f"{call}: {absent} have no node at {self.state.revision}")
        self._check_members(members)

    def _check_members(self, members: list[Change]) -> None:
        for change in members:
            if change.revision % self._every:
                continue
            pod = msgspec.json.decode(change.body)
            assert change.node_name is not None
            view = self.state.without(tuple(change.key))
            broken = objections(view, pod, change.node_name)
            if broken:
                self._report("A2", "as a group: " + self._told(change, broken))

    def _told(self, change: Change, broken: dict[str, list[str]]) -> str:
        commit = next(c for c in self._history.commits if c.first <= change.revision <= c.last)
        late = " (A8: planned before)" if commit.planned_at + 1 < commit.first else ""
        where = f"{change.namespace}/{change.name} on {change.node_name} at {change.revision}"
        return f"{where}{late}: {broken}"

    def _check_capacity(self, change: Change, *, is_placement: bool) -> None:
        if not is_placement or change.revision % self._every:
            return
        if change.node_name in self.state.view.nodes:
            excess = overcommitted(self.state.view, change.node_name)
            if excess:
                self._report("A1", f"{change.node_name} at {change.revision}: {excess}")

    # Answers

    def _check_answers(self) -> None:
        for call, result in self._answers.pop(self.state.revision, ()):
            if result is not None:
                self._check_result(call, result)
            else:
                check = getattr(self, f"_check_{call.action}", None)
                if check is not None:
                    check(call)

    def _check_place(self, call: Call, key: Key, told: str) -> None:
        """A pod that is told to be placed is where it is told to be, and that node is there."""
        node_name = self.state.node_of(key)
        if node_name != told:
            self._report("A12", f"{call}: {key} is on {node_name} at {self.state.revision}")
        if node_name not in self.state.view.nodes:
            self._report("A20", f"{call}: {key} is placed on {node_name}, which is not there")
        if self._has_ended_with_its_node(key):
            self._report("A20", f"{call}: {key} is placed, but has ended with {node_name}")

    def _check_denied_place(self, call: Call, key: Key, result: dict[str, Any]) -> None:
        """Only whose node is gone, or was, is on a node and told something else."""
        node_name = self.state.node_of(key)
        is_there = node_name in self.state.view.nodes
        reason = result.get("reason")
        if reason == "NodeNotFound":
            if is_there:
                self._report("A20", f"{call}: {key} is on {node_name}, which is there")
        elif reason != "PodNotActive":
            self._report("A12", f"{call}: {key} is {result['outcome']}, but on {node_name}")
        elif not is_there or not self._has_ended_with_its_node(key):
            self._report("A20", f"{call}: {key} is on {node_name}, and has not ended with it")

    def _has_ended_with_its_node(self, key: Key) -> bool:
        stored = self.state.bodies.get(key)
        return stored is not None and has_ended_with_its_node(stored[1])

    def _check_result(self, call: Call, result: dict[str, Any]) -> None:
        key = ("Pod", result["namespace"], result["name"])
        node_name = self.state.node_of(key)
        if result["outcome"] == "AlreadyPlaced":
            if not call.asked["group"]:
                self._check_place(call, key, result["nodeName"])
        elif node_name is not None:
            self._check_denied_place(call, key, result)
        elif not call.asked["group"]:
            self._check_admission(call, key, result)
            if result["outcome"] == "Denied":
                return
            if self._every > 1 and self.state.revision % self._every:
                return
            self._check_plan(call, key, result)

    def _check_admission(self, call: Call, key: Key, result: dict[str, Any]) -> None:
        """What quotas have against a new pod; one that is stored has been charged."""
        pod = None if self.state.pod(key) else _asked_pod(call, key)
        refused = None if pod is None else self.state.quotas(key[1]).refusal(pod)
        told = result["message"] if result.get("reason") == "QuotaExceeded" else None
        if told != refused and (result["outcome"] != "Denied" or told is not None):
            self._report("A15", f"{call}: {key} is told {told!r} of quotas, expected {refused!r}")

    def _check_plan(self, call: Call, key: Key, result: dict[str, Any]) -> None:
        pod = _asked_pod(call, key) or self.state.pod(key)
        if pod is None:
            self._report("A12", f"{call}: {key} was not there")
        elif result["outcome"] == "Placed":
            broken = objections(self.state.view, pod, result["nodeName"])
            if broken:
                self._report("A2", f"{call}: {result['nodeName']} was not feasible: {broken}")
            elif call.body["attempts"] == 1 and self._scores_left:
                self._check_score(call, pod, result)
        else:
            expected = self.state.evaluate(pod)["message"] + self._preemption_report(result)
            if call.asked.get("evict") and result.get("preemption") is None:
                stored = self.state.pod(key) or pod
                is_by_node = call.asked.get("scope") != "Domains"
                view = self.state.view if is_by_node else self.state.documented_view()
                told = evaluate_preemption(view, stored, [])
                expected = told["fullMessage"]
                if result["message"].endswith(UNDER_WAY) and self._others_leave(call, stored):
                    of_claims = "" if self._is_newest else "no new claims to deallocate, "
                    expected = f"{told['message']} {of_claims}{UNDER_WAY}"
            if expected != result["message"]:
                self._report("A15", f"{call}: told {result['message']!r}, expected {expected!r}")

    @property
    def _is_newest(self) -> bool:
        """Whether the cluster follows a version whose messages report preemption, but no claims."""
        return bool(self.state.cluster.config["kubernetes"] == "1.37")

    def _preemption_report(self, result: dict[str, Any]) -> str:
        """Return what a message says about the node where preemption makes room, if anything."""
        proposal = result.get("preemption")
        if not proposal or not self._is_newest:
            return ""
        victims = len(proposal["victims"]) + proposal.get("otherVictims", 0)
        node = proposal["nodeName"]
        report = f"found a potential placement for pod on node {node}, preempting {victims} victims"
        return f" preemption: {report}"

    def _others_leave(self, call: Call, pod: Manifest) -> bool:
        """Whether pods on any nodes are leaving that may have kept the pod from its nominated node."""
        return (
            call.asked.get("scope") == "Domains"
            and nomination_of(pod) is not None
            and any(
                is_preempted(each) and is_terminating(each) and priority_of(each) < priority_of(pod)
                for each, _ in self.state.view.placed()
            )
        )

    def _check_score(self, call: Call, pod: Manifest, result: dict[str, Any]) -> None:
        self._scores_left -= 1
        expected = self.state.evaluate(pod)
        told = (result["nodeName"], result["score"])
        if told[0] not in expected["best"] or told[1] != expected["total"][told[0]]:
            self._report(
                "A15", f"{call}: {told} in place of {expected['best']}, {expected['total']}"
            )

    def _check_put(self, call: Call) -> None:
        self._check_shown(call, self.state.bodies.get(tuple(call.asked["object"])))

    _check_evict = _check_get = _check_put

    def _check_delete(self, call: Call) -> None:
        if call.asked["object"][0] != "Namespace" and call.body is not None:
            self._check_shown(call, self.state.bodies.get(tuple(call.asked["object"])))

    def _check_shown(self, call: Call, stored: tuple[int, bytes] | None) -> None:
        shown = call.body and (call.body["resourceVersion"], call.body["object"])
        if shown and call.action != "get" and call.asked["object"][0] == "ResourceQuota":
            shown = (shown[0], self._check_status(call, shown[1]))
        if shown != stored:
            self._report("A12", f"{call} shows {shown}, but there was {stored}")

    def _check_quotas(self, call: Call) -> None:
        told = {
            ("ResourceQuota", each["namespace"], each["name"]): (
                each["resourceVersion"],
                self._check_status(call, each["object"]),
            )
            for each in call.body
        }
        stored = {k: v for k, v in self.state.bodies.items() if k[0] == "ResourceQuota"}
        if told != stored:
            self._report("A12", f"{call} shows {told}, but there was {stored}")

    def _check_status(self, call: Call, shown: bytes) -> bytes:
        """The quota without its status, which says exactly what its pods are charged."""
        body, found, _ = shown.rpartition(b',"status":')
        quota = msgspec.json.decode(shown)
        used = self.state.quotas(quota["metadata"]["namespace"]).used(quota)
        told = amounts(quota["status"]["used"])
        if not found or told != used:
            self._report("A13", f"{call} says that {told} is used, not {used}")
        return body + b"}"

    def _check_topology(self, call: Call) -> None:
        pods: defaultdict[str, int] = defaultdict(int)
        for name, node in self.state.view.nodes.items():
            value = labels_of(node).get(call.asked["topology_key"])
            if value is not None:
                pods[value] += len(self.state.view.pods_on[name])
        told = {domain["value"]: domain["pods"] for domain in call.body["domains"]}
        if told != pods:
            self._report("A13", f"{call} counts {told} pods, not {dict(pods)}")

    # Refusals

    def _check_refusal(self, call: Call) -> None:
        """A refusal is true of some state between call and return (P8)."""
        if call.head_called is None or call.head_returned is None:
            return
        keys = call.asked.get("pods") or [call.asked.get("object")]
        revisions = range(call.head_called, call.head_returned + 1)
        if call.status == "NotFound":
            true = any(None in self._revisions(tuple(key), revisions) for key in keys)
        elif call.status == "RevisionConflict":
            wanted = int(call.asked["resource_version"])
            true = self._revisions(tuple(keys[0]), revisions) != {wanted}
        else:
            return
        if not true:
            self._report("A12", f"{call} was not true of any state in {revisions}")

    def _revisions(self, key: Key, revisions: range) -> set[int | None]:
        """The object's own revisions at those of the log; None where it was not there."""
        present: int | None = None
        seen: set[int | None] = set()
        for revision, after in self._absences[key]:
            if revision >= revisions.stop:
                break
            if revision > revisions.start:
                seen.add(present)
            present = after
        return seen | {present}

    def _report(self, invariant: str, message: str) -> None:
        self._found.append(Violation(invariant, message))


def _on_committed_ground(call: Call) -> list[dict[str, Any]]:
    """Results that were decided on a state that the log knows.

    In a dry run the later pods see the earlier ones, which are never committed.
    """
    if call.recorded:
        return []
    results: list[dict[str, Any]] = call.body["results"]
    return results[:1] if call.asked["dry_run"] else results


def _asked_pod(call: Call, key: Key) -> Manifest | None:
    for manifest in call.manifests:
        metadata = manifest["metadata"]
        if (metadata["namespace"], metadata["name"]) == key[1:]:
            return manifest
    return None
