"""The client of one server, with a default cluster and all of the server's operations."""

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
"""The maximum number of lines that the server commits at once."""


class Client(PodCalls):
    """Calls one server about one of its clusters. Many tasks or threads may share a client.

    Args of the constructor:
        url: The server.
        cluster: The cluster; `on_cluster` creates clients for others.
        token: The bearer token, if the server requires one.
        timeout_seconds: How long to wait for one answer.
        retries: When and for how long to retry requests.
        transport: The httpx transport, for tests and proxies.
        sleep: The function for pauses between attempts.
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
        """Close all connections, including those of clients made by `on_cluster`."""
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
            prune: Kinds whose objects are deleted if they are not among `objects`.
            prune_before: Only delete objects last changed at or before this revision.
            dry_run: Whether to only report what would change.
            idempotency_key: The key of an earlier call repeats that call's answer.
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
        """Store any number of objects, in commits of at most 1,000, and yield each line's result.

        An error in one line does not stop the others. `{"delete": {"kind": …, "metadata": {…}}}`
        instead of a manifest deletes an object. Lines are numbered from 1 across all requests. In a
        dry run, a line does not see the changes of earlier commits, since nothing is stored.
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
        """Yield changes as they are committed, endlessly, in the order of their revisions.

        A broken stream, for example after a server restart, is resumed where it ended. Bookmarks
        are yielded, too: all changes up to a bookmark's revision were yielded before it.

        Args:
            since: Only changes after this revision, by default the current one.
            kinds: Only objects of these kinds; the configuration is the kind Cluster.
            namespace: Only objects in this namespace.
            label_selector: Only objects with matching labels. One that starts to match is ADDED.

        Raises (from the iterator):
            ExpiredError: the log does not reach back far enough; list again, or use a cache.
            ProblemError: the server refused.
            NoAnswerError: the server was unreachable for longer than the client retries.
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
        """Yield pod placements and removals as they are committed, endlessly, ordered by revision.

        Use this stream if you only act on placements and rarely need whole pods. A broken stream is
        resumed where it ended. Bookmarks are yielded, too; store the revision of the last record to
        resume from there after a restart.

        Args:
            since: Only changes after this revision, by default the current one.
            namespace: Only pods in this namespace.
            node_name: Only pods on this node. A pod that moves to another node is Unplaced.

        Raises (from the iterator):
            ExpiredError: the log does not reach back far enough; list the pods again.
            ProblemError: the server refused.
            NoAnswerError: the server was unreachable for longer than the client retries.
        """
        params = {"namespace": namespace, "nodeName": node_name}
        request = streaming(self.path("bindings"), params, accept=NDJSON)
        return followed(self._connection, request, since, BindingReader)

    def events(
        self, *, namespace: str | None = None, field_selector: str | None = None
    ) -> Generator[types.Event]:
        """Yield recent events of pods, in Kubernetes' format."""
        kept: Objects[types.Event] = Objects(self._connection, self.cluster, KINDS["Event"])
        return kept.list(namespace=namespace, field_selector=field_selector)

    def export(self) -> AbstractContextManager[Iterator[bytes]]:
        """Open the List of all objects at one revision, yielding JSON text in pieces."""
        return self._connection.stream(streaming(self.path("export"), {}, accept=JSON))

    def get_cluster(self) -> types.Cluster:
        """Return the cluster's configuration, revision, and counts."""
        return cast("types.Cluster", self._asked(reading(self.path())))

    def readable_revisions(self, revision: int | None = None) -> types.ReadableRevisions:
        """Return which earlier revisions can be read, and when one of them was committed."""
        answer = self._asked(reading(self.path("revisions"), {"revision": revision}))
        return cast("types.ReadableRevisions", answer)

    def put_cluster(
        self, config: Mapping[str, Any] | None = None, *, dry_run: bool = False
    ) -> types.Cluster:
        """Create the cluster, or replace its configuration; omitted settings get their defaults.

        Without `config`, this ensures that the cluster exists; an existing cluster keeps its
        settings.
        """
        params, body = dry(dry_run=dry_run), {} if config is None else {"config": config}
        request = putting(self.path(), body, params=params)
        return cast("types.Cluster", self._asked(request))

    def configure(self, **settings: Any) -> types.Cluster:
        """Change individual settings, given by their API names; None resets a setting."""
        request = patching(self.path(), {"config": settings})
        return cast("types.Cluster", self._asked(request))

    def delete_cluster(self, *, dry_run: bool = False) -> types.DeletedCluster:
        """Delete the cluster with everything in it."""
        params = {"dryRun": "true"} if dry_run else None
        return cast("types.DeletedCluster", self.request("DELETE", self.path(), params=params))

    def list_clusters(self) -> list[types.Cluster]:
        """List the clusters that the caller may see."""
        answer = self._asked(reading("/v1/clusters"))
        return cast("list[types.Cluster]", answer["items"])

    def simulate(self, request: Mapping[str, Any]) -> types.PlacementAnswer:
        """Place pods on a cluster given in the request (`types.SimulationRequest`)."""
        answer = self._asked(asking("/v1/simulations", request))
        return cast("types.PlacementAnswer", answer)

    def place_over_clusters(self, request: Mapping[str, Any]) -> types.OverClustersAnswer:
        """Find a cluster and a node for each of several pods (`types.OverClustersRequest`)."""
        answer = self._asked(asking("/v1/placements", request))
        return cast("types.OverClustersAnswer", answer)

    def whoami(self) -> types.Caller:
        """Return the caller's identity and rights, as the server sees them."""
        return cast("types.Caller", self._asked(reading("/v1/whoami")))
