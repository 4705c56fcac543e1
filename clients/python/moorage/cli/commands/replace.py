"""`moorage replace`: roll a workload to a new template, wave by wave."""

from typing import Annotated, Any

import typer

from moorage.cli.changes.plans import did, has_ended, keep_plan
from moorage.cli.exceptions import ExitCode, WrongUsage
from moorage.cli.input.durations import read_seconds
from moorage.cli.input.sources import read_objects
from moorage.cli.input.workloads import expand, workload_kind
from moorage.cli.progress.plan_waiter import FOREVER, NoWait, Patience, wait_for_plans
from moorage.cli.session.options import DryRun, Session, connected

_KIND = "Deployment"
_IS_REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}


@connected
def replace(
    session: Session,
    *,
    file: Annotated[str, typer.Option("--file", "-f", help="The workload as it is to be.")],
    max_surge: Annotated[
        str | None,
        typer.Option("--max-surge", help="How many more pods there may be: 1, or 25%."),
    ] = None,
    max_unavailable: Annotated[
        str | None,
        typer.Option("--max-unavailable", help="How many may be missing: 1, or 25%."),
    ] = None,
    no_wait: NoWait = False,
    timeout: Patience = FOREVER,
    dry_run: DryRun = False,
) -> None:
    """Replace the pods of a workload by those of its new template, in waves.

    The pods are those that the workload's selector selects. The server does it, and goes on if this
    command is stopped: `moorage get plans` shows how far it has come, and deleting the plan ends it.
    A release of the workload that still runs is cancelled, and its pods are replaced, too. Without
    the two options it is as the workload's strategy says. A dry run tells the waves.
    """
    seconds = read_seconds("--timeout", timeout)
    item = _read(file, is_told=max_surge is not None or max_unavailable is not None)
    expansion = expand([item], lambda _: [])
    goal = _goal(session, item, expansion.only(pods=True).objects)
    for name, given in (("maxSurge", max_surge), ("maxUnavailable", max_unavailable)):
        if given is not None:
            goal[name] = int(given) if given.isdecimal() else given
    if dry_run:
        asked = {key: value for key, value in goal.items() if key != "progressDeadlineSeconds"}
        plan = session.client.post(session.client.path("plans"), {"goal": asked})
        _tell(session, plan)
        if not plan["complete"]:
            raise typer.Exit(ExitCode.REFUSED)
        return
    _declare(session, item, goal["namespace"], expansion.only(pods=False).objects)
    name = f"replace-{goal['template']['metadata']['name']}"
    running = _running(session, goal)
    for release in running:
        if release["metadata"]["name"] != name:
            _supersede(session, release, name)
    before = next((release for release in running if release["metadata"]["name"] == name), None)
    kept = keep_plan(session, name, {"goal": goal}, before)
    session.done(kept, f"plan/{name} {did(before, kept, 'replaces the pods')}")
    if not no_wait:
        wait_for_plans(session, [name], seconds)


def _running(session: Session, goal: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the unfinished plans that roll out the same workload."""
    same = ("type", "namespace", "selector")
    return [
        plan
        for page in session.client.pages(session.client.path("plans"))
        for plan in page
        if all(plan["spec"]["goal"].get(field) == goal[field] for field in same)
        and not has_ended(plan)
        and plan["spec"].get("state") != "Cancelled"
    ]


def _supersede(session: Session, plan: dict[str, Any], name: str) -> None:
    """Cancel a rollout that a newer one supersedes, as a Deployment's new template does."""
    earlier = plan["metadata"]["name"]
    session.client.post(session.client.path("plans", earlier, "cancel"), {})
    session.output.note(f"plan/{earlier} is cancelled: plan/{name} takes its place.")


def _read(file: str, *, is_told: bool) -> dict[str, Any]:
    """Read the workload; `is_told` says whether options set the rollout's bounds.

    Raises:
        WrongUsage: the file holds something else, or a workload whose pods are never there together
            with others.
    """
    objects = read_objects([file])
    if len(objects) != 1 or workload_kind(objects[0]) != _KIND:
        raise WrongUsage(f"--file has to hold exactly one {_KIND}.")
    item = objects[0]
    strategy = item["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate" and not is_told:
        raise WrongUsage(
            "Old and new pods of a workload with the strategy Recreate are not to run at the same "
            "time, and here they would; give --max-surge or --max-unavailable if they may."
        )
    return item


def _declare(
    session: Session, item: dict[str, Any], namespace: str, replica_sets: list[dict[str, Any]]
) -> None:
    """Store the new replica set, and set the replicas of the workload's earlier ones to 0.

    Disruption budgets count the desired replicas, as in Kubernetes, so their sum has to stay that
    of the workload.
    """
    client, name = session.client, item["metadata"]["name"]
    new = [
        {**replica_set, "metadata": {**replica_set["metadata"], "namespace": namespace}}
        for replica_set in replica_sets
    ]
    names = {replica_set["metadata"]["name"] for replica_set in new}
    path = client.path("namespaces", namespace, "replicasets")
    earlier = [
        {**replica_set, **_IS_REPLICA_SET, "spec": {**replica_set["spec"], "replicas": 0}}
        for page in client.pages(path)
        for replica_set in page
        if _is_of(replica_set, name) and replica_set["metadata"]["name"] not in names
    ]
    body = {"apiVersion": "v1", "kind": "List", "items": [*new, *earlier]}
    client.post(client.path("apply"), body)


def _is_of(replica_set: dict[str, Any], name: str) -> bool:
    owners = replica_set["metadata"].get("ownerReferences") or ()
    return any((owner["kind"], owner["name"]) == (_KIND, name) for owner in owners)


def _goal(session: Session, item: dict[str, Any], made: list[dict[str, Any]]) -> dict[str, Any]:
    if not made:
        raise WrongUsage("The workload wants no pods; delete those that are there instead.")
    first = made[0]
    metadata = {**first["metadata"], "name": first["metadata"]["name"].rpartition("-")[0]}
    namespace = (item.get("metadata") or {}).get("namespace") or session.namespace
    metadata["namespace"] = namespace
    spec = item["spec"]
    selector = spec.get("selector") or {}
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    goal = {
        "type": "Replace",
        "namespace": namespace,
        "selector": selector,
        "template": {"metadata": metadata, "spec": first["spec"]},
        "replicas": len(made),
        "maxSurge": rolling.get("maxSurge"),
        "maxUnavailable": rolling.get("maxUnavailable"),
        "progressDeadlineSeconds": spec.get("progressDeadlineSeconds"),
    }
    return {key: value for key, value in goal.items() if value is not None}


def _tell(session: Session, plan: dict[str, Any]) -> None:
    output = session.output
    if not output.for_people:
        output.document(plan)
        return
    for step in plan["steps"]:
        to = f" on {step['to']}" if step.get("to") else f" from {step.get('from', 'nowhere')}"
        does = "comes" if step["action"] == "Place" else "goes"
        output.line(f"wave {step['wave']}: {step['namespace']}/{step['name']} {does}{to}")
    for pod in plan["unplaced"]:
        output.line(f"{pod['namespace']}/{pod['name']} waits: {pod['message']}")
