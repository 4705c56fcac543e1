"""Does once for all pods of a cluster what whoever runs them does all the time.

`python examples/run_pods.py` reports which pods are ready, confirms that those that are to leave have
ended, and forgets those whose node is gone. On a node that says Ready=False no pod is ready, and none
is known to have ended. With the name of a plan it goes on with every step of the plan until that has
ended. Server and cluster are those of `MOORAGE_URL` and `MOORAGE_CLUSTER`.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

from moorage import Client

TOLD = os.environ  # noqa: TID251 - it is no part of the server
SERVER = TOLD.get("MOORAGE_URL", "http://127.0.0.1:8080")
CLUSTER = TOLD.get("MOORAGE_CLUSTER", "default")

Manifest = Mapping[str, Any]


def main() -> None:
    with Client(SERVER, cluster=CLUSTER) as client:
        run_pods(client)
        for plan in sys.argv[1:]:
            follow(client, plan)


def follow(client: Client, name: str) -> None:
    """Run the pods until a plan has ended, once after each change of it."""
    plan: Manifest = client.plans.get(name)
    changes = client.plans.watch(since=int(plan["metadata"]["resourceVersion"]))
    run_pods(client)
    while "endedAt" not in plan.get("status", {}):
        event = next(changes)
        if event.object["metadata"]["name"] == name:
            plan = event.object
            run_pods(client)


def run_pods(client: Client) -> None:
    serves = {each["metadata"]["name"]: ready(each) != "False" for each in client.nodes.list()}
    reports = []
    for pod in client.pods.list():
        node = pod["spec"].get("nodeName")
        if node is None:
            continue
        pod_name = {"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]}
        if has_ended(pod, node_serves=serves.get(node)):
            client.pods.delete(**pod_name)
        elif ready(pod) != str(serves[node]):
            status = {"conditions": [{"type": "Ready", "status": str(serves[node])}]}
            reports.append({**pod_name, "status": status})
    if reports:
        client.report_statuses(reports)


def has_ended(pod: Manifest, *, node_serves: bool | None) -> bool:
    """Whether nothing runs of a pod any more; of a node that is gone, `node_serves` is None."""
    return node_serves is None or (node_serves and "deletionTimestamp" in pod["metadata"])


def ready(item: Manifest) -> str:
    """Status of the condition Ready; nothing if nobody has reported it."""
    conditions = item.get("status", {}).get("conditions", [])
    return {each["type"]: each["status"] for each in conditions}.get("Ready", "")


if __name__ == "__main__":
    main()
