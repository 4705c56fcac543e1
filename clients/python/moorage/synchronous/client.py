"""The client: one server, by default one of its clusters, and all that can be asked of them."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import httpx
import msgspec

from moorage.batches import batched
from moorage.events import BindingReader, Event
from moorage.kinds import KINDS
from moorage.requests import (
    JSON,
    NDJSON,
    Manifest,
    asking,
    dry,
    patching,
    posting_lines,
    posting_once,
    putting,
    reading,
    streaming,
)
from moorage.retries import Retries, Sleep
from moorage.synchronous.connection import Connection
from moorage.synchronous.objects import Objects
from moorage.synchronous.pods import PodCalls
from moorage.synchronous.watching import followed, watched

if TYPE_CHECKING:
    from moorage import types

URL_DEFAULT = "http://127.0.0.1:8080"
LINES_PER_REQUEST = 1_000
"""The server commits at most so many lines at once."""


class Client(PodCalls):
    """Asks one server about one of its clusters; it may be used by many tasks or threads at once.

    Args of the constructor:
        url: The server.
        cluster: The cluster; `on_cluster` makes clients for others.
        token: The bearer token, if the server wants one.
        timeout_seconds: How long to wait for one answer.
        retries: How patient the client is.
        transport: How httpx sends requests; tests and proxies may want another one.
        sleep: Lets time pass.
    """

    def __init__(
        self,
        url: str = URL_DEFAULT,
        *,
        cluster: str = "default",
        token: str | None = None,
        timeout_seconds: float = 60.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        connection = Connection(
            url,
            token=token,
            timeout_seconds=timeout_seconds,
            retries=retries or Retries(),
            transport=transport,
            sleep=sleep,
        )
        self._enter_cluster(connection, cluster)

    def _enter_cluster(self, connection: Connection, cluster: str) -> None:
        super().__init__(connection, cluster)
        of = (connection, cluster)
        self.csi_drivers: Objects[types.CSIDriver] = Objects(*of, KINDS["CSIDriver"])
        self.csi_nodes: Objects[types.CSINode] = Objects(*of, KINDS["CSINode"])
        self.csi_storage_capacities: Objects[types.CSIStorageCapacity] = Objects(
            *of, KINDS["CSIStorageCapacity"]
        )
        self.data_sets: Objects[types.DataSet] = Objects(*of, KINDS["DataSet"])
        self.device_classes: Objects[types.DeviceClass] = Objects(*of, KINDS["DeviceClass"])
        self.limit_ranges: Objects[types.LimitRange] = Objects(*of, KINDS["LimitRange"])
        self.namespaces: Objects[types.Namespace] = Objects(*of, KINDS["Namespace"])
        self.nodes: Objects[types.Node] = Objects(*of, KINDS["Node"])
        self.persistent_volumes: Objects[types.PersistentVolume] = Objects(
            *of, KINDS["PersistentVolume"]
        )
        self.persistent_volume_claims: Objects[types.PersistentVolumeClaim] = Objects(
            *of, KINDS["PersistentVolumeClaim"]
        )
        self.plans: Objects[types.Plan] = Objects(*of, KINDS["Plan"])
        self.pods: Objects[types.Pod] = Objects(*of, KINDS["Pod"])
        self.pod_disruption_budgets: Objects[types.PodDisruptionBudget] = Objects(
            *of, KINDS["PodDisruptionBudget"]
        )
        self.pod_groups: Objects[types.PodGroup] = Objects(*of, KINDS["PodGroup"])
        self.replica_sets: Objects[types.ReplicaSet] = Objects(*of, KINDS["ReplicaSet"])
        self.replication_controllers: Objects[types.ReplicationController] = Objects(
            *of, KINDS["ReplicationController"]
        )
        self.resource_claims: Objects[types.ResourceClaim] = Objects(*of, KINDS["ResourceClaim"])
        self.resource_claim_templates: Objects[types.ResourceClaimTemplate] = Objects(
            *of, KINDS["ResourceClaimTemplate"]
        )
        self.resource_quotas: Objects[types.ResourceQuota] = Objects(*of, KINDS["ResourceQuota"])
        self.resource_slices: Objects[types.ResourceSlice] = Objects(*of, KINDS["ResourceSlice"])
        self.runtime_classes: Objects[types.RuntimeClass] = Objects(*of, KINDS["RuntimeClass"])
        self.services: Objects[types.Service] = Objects(*of, KINDS["Service"])
        self.stateful_sets: Objects[types.StatefulSet] = Objects(*of, KINDS["StatefulSet"])
        self.storage_classes: Objects[types.StorageClass] = Objects(*of, KINDS["StorageClass"])
        self.volume_attachments: Objects[types.VolumeAttachment] = Objects(
            *of, KINDS["VolumeAttachment"]
        )
        self.workloads: Objects[types.Workload] = Objects(*of, KINDS["Workload"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, also those of clients that `on_cluster` made."""
        self._connection.close()

    def on_cluster(self, cluster: str) -> Client:
        """Return a client of the same server, on the same connections, for another cluster."""
        other = object.__new__(Client)
        other._enter_cluster(self._connection, cluster)
        return other

    def apply(
        self,
        objects: Iterable[Manifest],
        *,
        prune: Sequence[str] = (),
        prune_before: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> types.ApplyAnswer:
        """Store objects of any kinds in one commit, all or none.

        Args:
            objects: Manifests, each with its `kind`.
            prune: Kinds of which all is deleted that is not among these objects.
            prune_before: Only what was last changed at this revision or before is.
            dry_run: Whether to tell what would be changed, but change nothing.
            idempotency_key: With the key of an earlier call its answer is given again.
        """
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        params = {
            "prune": ",".join(prune) or None,
            "pruneBefore": prune_before,
            **dry(dry_run=dry_run),
        }
        request = posting_once(self.path("apply"), body, params, idempotency_key)
        return cast("types.ApplyAnswer", self._asked(request))

    def apply_lines(
        self, lines: Iterable[Manifest], *, dry_run: bool = False
    ) -> Generator[types.LineResult]:
        """Store any number of objects, in commits of at most 1,000; yield what became of each.

        A bad line does not keep the others. `{"delete": {"kind": …, "metadata": {…}}}` in place of a
        manifest deletes an object. Lines count from 1, over all requests. A dry run changes nothing,
        so no line sees what those before its own commit would have changed.
        """
        before, params = 0, dry(dry_run=dry_run)
        for batch in batched(lines, LINES_PER_REQUEST):
            answer = self._connection.send(posting_lines(self.path("apply"), batch, params))
            for line in answer.content.splitlines():
                result = msgspec.json.decode(line)
                yield cast("types.LineResult", {**result, "line": before + result["line"]})
            before += len(batch)

    def watch(
        self,
        *,
        since: int | None = None,
        kinds: Sequence[str] = (),
        namespace: str | None = None,
        label_selector: str | None = None,
    ) -> Generator[Event[Any]]:
        """Yield changes as they are committed, without end, in the order of their revisions.

        A stream that breaks, also because the server restarts, is taken up where it ended. Bookmarks
        are yielded, too: they say that everything up to their revision was.

        Args:
            since: Only changes after this revision; those after the present one if there is none.
            kinds: Only objects of these kinds; the configuration is the kind Cluster.
            namespace: Only objects in this namespace.
            label_selector: Only objects with such labels. One that begins to match is ADDED.

        Raises (from the iterator):
            ExpiredError: the log does not reach back far enough: list again, or use a cache.
            ProblemError: the server refused.
            NoAnswerError: the server stayed away for longer than the client is patient.
        """
        params = {
            "kind": ",".join(kinds) or None,
            "namespace": namespace,
            "labelSelector": label_selector,
        }
        return watched(self._connection, self.path("watch"), params, since)

    def bindings(
        self,
        *,
        since: int | None = None,
        namespace: str | None = None,
        node_name: str | None = None,
    ) -> Generator[types.BindingChange]:
        """Yield which pods get and lose which nodes, without end, in the order of their revisions.

        It is a watch for those who act on placements alone, and read pods only if they have to. A
        stream that breaks is taken up where it ended. Bookmarks are yielded, too: who keeps the
        revision of the last record goes on from there after a restart.

        Args:
            since: Only changes after this revision; those after the present one if there is none.
            namespace: Only pods in this namespace.
            node_name: Only pods on this node. One that moves to another is Unplaced.

        Raises (from the iterator):
            ExpiredError: the log does not reach back far enough: list the pods again.
            ProblemError: the server refused.
            NoAnswerError: the server stayed away for longer than the client is patient.
        """
        params = {"namespace": namespace, "nodeName": node_name}
        request = streaming(self.path("bindings"), params, accept=NDJSON)
        return followed(self._connection, request, since, BindingReader)

    def events(
        self, *, namespace: str | None = None, field_selector: str | None = None
    ) -> Generator[types.Event]:
        """Yield what happened to pods lately, as Kubernetes' events."""
        kept: Objects[types.Event] = Objects(self._connection, self.cluster, KINDS["Event"])
        return kept.list(namespace=namespace, field_selector=field_selector)

    def export(self) -> AbstractContextManager[Iterator[bytes]]:
        """Open the List of all objects at one revision; yields its pieces, JSON as a whole."""
        return self._connection.stream(streaming(self.path("export"), {}, accept=JSON))

    def get_cluster(self) -> types.Cluster:
        """Return the cluster's configuration, revision and counts."""
        return cast("types.Cluster", self._asked(reading(self.path())))

    def readable_revisions(self, revision: int | None = None) -> types.ReadableRevisions:
        """Tell which earlier revisions can be read, and when one of them was committed."""
        answer = self._asked(reading(self.path("revisions"), {"revision": revision}))
        return cast("types.ReadableRevisions", answer)

    def put_cluster(
        self, config: Mapping[str, Any] | None = None, *, dry_run: bool = False
    ) -> types.Cluster:
        """Create the cluster, or replace its configuration; settings not named get their defaults.

        Without `config` this makes sure that the cluster exists: one that does keeps its settings.
        """
        params, body = dry(dry_run=dry_run), {} if config is None else {"config": config}
        request = putting(self.path(), body, params=params)
        return cast("types.Cluster", self._asked(request))

    def configure(self, **settings: Any) -> types.Cluster:
        """Change single settings, by their names in the API; None resets one."""
        request = patching(self.path(), {"config": settings})
        return cast("types.Cluster", self._asked(request))

    def delete_cluster(self, *, dry_run: bool = False) -> types.DeletedCluster:
        """Delete the cluster with all that is in it."""
        params = {"dryRun": "true"} if dry_run else None
        return cast("types.DeletedCluster", self.request("DELETE", self.path(), params=params))

    def list_clusters(self) -> list[types.Cluster]:
        """List the clusters that the caller may see."""
        answer = self._asked(reading("/v1/clusters"))
        return cast("list[types.Cluster]", answer["items"])

    def simulate(self, request: Mapping[str, Any]) -> types.PlacementAnswer:
        """Place pods on a cluster that is in the request (`types.SimulationRequest`); stores nothing."""
        answer = self._asked(asking("/v1/simulations", request))
        return cast("types.PlacementAnswer", answer)

    def place_over_clusters(self, request: Mapping[str, Any]) -> types.OverClustersAnswer:
        """Find a cluster, and a node there, for each of some pods (`types.OverClustersRequest`)."""
        answer = self._asked(asking("/v1/placements", request))
        return cast("types.OverClustersAnswer", answer)

    def whoami(self) -> types.Caller:
        """Tell who the server takes the caller for, and what the caller may do."""
        return cast("types.Caller", self._asked(reading("/v1/whoami")))
