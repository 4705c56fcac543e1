"""Services and other owners of pods, whose selectors define which pods belong together.

A pod's default topology spread constraints combine the selectors of its services and its owner.
"""

from service.model.core import names
from service.model.core.kind import KindSpec
from service.model.core.primitives import LabelSelector, Partial
from service.model.core.selector_rules import LABEL_SELECTOR, LABELS
from service.model.core.validators import INT32_MAX, Rule, record, whole_number


class ServiceSpec(Partial, frozen=True, kw_only=True):
    """Which pods a service is for. Other fields are kept and returned as they are."""

    selector: dict[str, str] | None = None
    """Labels that its pods have; absent or empty: it selects no pods."""


class ServiceBody(Partial, frozen=True, kw_only=True):
    """The fields of a service that scheduling reads."""

    spec: ServiceSpec = ServiceSpec()
    """Which pods it is for."""


class ReplicationControllerSpec(Partial, frozen=True, kw_only=True):
    """Which pods a controller manages. Other fields are kept and returned as they are."""

    selector: dict[str, str] | None = None
    """Labels that its pods have."""
    replicas: int = 1
    """How many pods there should be."""


class ReplicationControllerBody(Partial, frozen=True, kw_only=True):
    """The fields of a replication controller that scheduling reads."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    """Which pods it manages."""


class ReplicaSetSpec(Partial, frozen=True, kw_only=True):
    """Which pods a replica set manages. Other fields are kept and returned as they are."""

    selector: LabelSelector | None = None
    """Selects its pods."""
    replicas: int = 1
    """How many pods there should be."""


class ReplicaSetBody(Partial, frozen=True, kw_only=True):
    """The fields of a replica set that scheduling reads."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    """Which pods it manages."""


class StatefulSetSpec(Partial, frozen=True, kw_only=True):
    """Which pods a stateful set manages. Other fields are kept and returned as they are."""

    selector: LabelSelector | None = None
    """Selects its pods."""
    replicas: int = 1
    """How many pods there should be."""


class StatefulSetBody(Partial, frozen=True, kw_only=True):
    """The fields of a stateful set that scheduling reads."""

    spec: StatefulSetSpec = StatefulSetSpec()
    """Which pods it manages."""


def _selecting(selector: Rule) -> dict[str, Rule]:
    replicas = whole_number(0, INT32_MAX)
    return {"spec": record({"selector": selector, "replicas": replicas}, closed=False)}


_WEB = {"app": "web"}

SERVICE = KindSpec(
    kind="Service",
    plural="services",
    body=ServiceBody,
    fields=_selecting(LABELS),
    name_check=names.dns_label,
    short_names=("svc",),
    description="Services, by whose selectors default topology spread constraints select pods.",
    example={"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": _WEB}},
)
REPLICATION_CONTROLLER = KindSpec(
    kind="ReplicationController",
    plural="replicationcontrollers",
    body=ReplicationControllerBody,
    fields=_selecting(LABELS),
    short_names=("rc",),
    description="Replication controllers, whose selectors default topology spread constraints take "
    "for the pods that they own.",
    example={"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": _WEB}},
)
REPLICA_SET = KindSpec(
    kind="ReplicaSet",
    plural="replicasets",
    api_version="apps/v1",
    body=ReplicaSetBody,
    fields=_selecting(LABEL_SELECTOR),
    short_names=("rs",),
    description="Replica sets, whose selectors default topology spread constraints take for the "
    "pods that they own.",
    example={
        "metadata": {"name": "web-5d4f8", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {**_WEB, "pod-template-hash": "5d4f8"}}},
    },
)
STATEFUL_SET = KindSpec(
    kind="StatefulSet",
    plural="statefulsets",
    api_version="apps/v1",
    body=StatefulSetBody,
    fields=_selecting(LABEL_SELECTOR),
    short_names=("sts",),
    description="Stateful sets, whose selectors default topology spread constraints take for the "
    "pods that they own.",
    example={
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
    },
)

WORKLOADS = (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)
