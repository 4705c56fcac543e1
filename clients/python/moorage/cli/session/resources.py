"""The kinds of objects that commands know, and how command lines name objects."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render import rows as table_rows
from moorage.cli.render.rows import Clock, Item
from moorage.cli.session.client import Client
from moorage.kept_kinds import DECLARED_KINDS
from moorage.kinds import KINDS, Kind

OF_ALL = ("pods", "services", "replicationcontrollers", "replicasets", "statefulsets")
"""The kinds that `all` stands for: those of kubectl's `all` that Moorage stores."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A kind of objects, and its table columns."""

    plural: str
    kind: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = False
    of_server: bool = False
    """Whether its objects belong to the server instead of a cluster."""
    columns: tuple[str, ...]
    """The headings after the namespace column."""
    row: Callable[[Item, Clock], Sequence[object]]
    wide_columns: tuple[str, ...] = ()
    wide: Callable[[Item], Sequence[object]] = lambda _: ()
    order: Callable[[Item], str] | None = None
    """Returns the sort key of a list, or None for the server's order (namespace and name)."""
    names_namespace: bool = False
    """Whether a row shows the namespace itself, without a namespace column."""

    @property
    def singular(self) -> str:
        """The kind in lowercase, as in `pod/web-0`."""
        return self.kind.lower()

    def path(self, client: Client, namespace: str | None, name: str | None = None) -> str:
        """Return the path of one object, or of all objects (in a namespace)."""
        last = () if name is None else (name,)
        if self.of_server:
            return "/".join(["/v1/clusters", *(quote(part, safe="") for part in last)])
        inner = ("namespaces", namespace) if self.namespaced and namespace else ()
        return client.path(*inner, self.plural, *last)


@dataclass(frozen=True)
class Target:
    """An object named on the command line, or without a name, all objects of its kind."""

    resource: Resource
    namespace: str | None
    name: str | None

    @property
    def told(self) -> str:
        """The object as shown in messages and by `-o name`."""
        parts = (self.resource.singular, self.namespace, self.name)
        return "/".join(part for part in parts if part)

    def path(self, client: Client) -> str:
        """Return the path of the object or of the list."""
        return self.resource.path(client, self.namespace, self.name)


def find_resource(name: str) -> Resource:
    """Return the kind with a name such as `pods`, `pod`, `po`, or `pods.v1`.

    Raises:
        WrongUsage: no kind has this name.
    """
    plain = name.lower().partition(".")[0]
    for resource in RESOURCES:
        if plain in (resource.plural, resource.singular, *resource.short_names):
            return resource
    if plain.rstrip("s") in WORKLOADS:
        raise WrongUsage(
            f"{name}: only their pods are kept. `apply -f` makes them, and `get pods` shows them."
        )
    known = [*(resource.plural for resource in RESOURCES), "all"]
    near = get_close_matches(plain, known, n=1)
    meant = f" Did you mean {near[0]}?" if near else f" Known kinds: {', '.join(known)}."
    raise WrongUsage(f"No such kind: {name}.{meant}")


def read_targets(words: Sequence[str], namespace: str | None) -> list[Target]:
    """Parse a command's targets: `KIND[,KIND…] [NAME…]`, or `KIND/NAME…`.

    A name may also be `NAMESPACE/NAME`, and `-o name` prints `KIND/NAMESPACE/NAME`. A name without
    a namespace is in `namespace`, or else in `default`; a list covers `namespace`, or else all
    namespaces.

    Raises:
        WrongUsage: the words have another form, or a kind is unknown.
    """
    if not words:
        raise WrongUsage("Name a kind, such as pods, or an object, such as pod/web-0.")
    if "/" in words[0]:
        return [_slashed(word, namespace) for word in words]
    resources = list(_resources(words[0]))
    names = words[1:]
    if not names:
        return [_target(resource, namespace, None) for resource in resources]
    return [_target(resource, namespace, name) for resource in resources for name in names]


def listed(client: Client, target: Target, selector: str | None) -> Iterator[Target]:
    """Expand a list into its current objects with matching labels."""
    for page in client.pages(target.path(client), {"labelSelector": selector}):
        for item in page:
            metadata = item["metadata"]
            yield Target(target.resource, metadata.get("namespace"), metadata["name"])


def _resources(words: str) -> Iterator[Resource]:
    for word in filter(None, words.split(",")):
        if word.lower() == "all":
            yield from (find_resource(kind) for kind in OF_ALL)
        else:
            yield find_resource(word)


def _slashed(word: str, namespace: str | None) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not name:
        raise WrongUsage(f"{word}: expected KIND/NAME, as the first argument is.")
    return _target(find_resource(kind), namespace, name)


def _target(resource: Resource, namespace: str | None, name: str | None) -> Target:
    if not resource.namespaced:
        return Target(resource, None, name)
    if name is None:
        return Target(resource, namespace, None)
    return Target(resource, *split_identity(name, namespace))


def split_identity(text: str, namespace: str | None) -> tuple[str, str]:
    """Split `namespace/name`; a name without a slash is in `namespace`, or else in `default`.

    Raises:
        WrongUsage: `text` and `namespace` name different namespaces.
    """
    head, slash, tail = text.partition("/")
    if slash and namespace and namespace != head:
        raise WrongUsage(f"{text} is not in the namespace {namespace}.")
    return (head, tail) if slash else (namespace or "default", text)


def pod_identity(text: str, namespace: str | None) -> tuple[str, str]:
    """Split the name of a pod, which may also be `pod/NAME` or `pod/NAMESPACE/NAME`.

    Raises:
        WrongUsage: as `split_identity`.
    """
    head, slash, tail = text.partition("/")
    is_kind = slash and head in {"pod", "pods", "po"}
    return split_identity(tail if is_kind else text, namespace)


def node_name(text: str) -> str:
    """Return the name of a node, which may also be written as `node/NAME`."""
    head, slash, tail = text.partition("/")
    return tail if slash and head in {"node", "nodes", "no"} else text


def complete_kind(incomplete: str) -> Iterable[str]:
    """Return the kinds that begin with `incomplete`, for shell completion."""
    return [resource.plural for resource in RESOURCES if resource.plural.startswith(incomplete)]


def _kept(kind: Kind) -> Resource:
    columns, row = _SHOWN.get(kind.name, (("name", "age", "labels"), table_rows.labelled_row))
    return _resource(kind.name, columns=columns, row=row)


def _resource(name: str, **shown: Any) -> Resource:
    """Return the resource for one of the client package's kinds."""
    kind = KINDS[name]
    return Resource(
        plural=kind.plural,
        kind=kind.name,
        short_names=kind.short_names,
        namespaced=kind.namespaced,
        **shown,
    )


_SHOWN: Mapping[str, tuple[tuple[str, ...], Callable[[Item, Clock], Sequence[object]]]] = {
    "Plan": (("name", "phase", "evicted", "leaving", "waiting", "age"), table_rows.plan_row),
}
"""The table columns of some declared kinds; other kinds show their labels."""


WORKLOADS = frozenset({"deployment", "deploy", "job", "cronjob", "cj", "daemonset", "d"})
"""Kinds stored only as their pods, without the plural's s (`ds` is short for daemon sets)."""

PODS = _resource(
    "Pod",
    columns=("name", "state", "node", "age", "waits for"),
    row=table_rows.pod_row,
    wide_columns=("owner", "priority", "nominated node", "scheduler"),
    wide=table_rows.pod_wide,
)
NODES = _resource(
    "Node",
    columns=("name", "state", "zone", "cpu", "memory", "pods", "age", "taints"),
    row=table_rows.node_row,
    wide_columns=("type", "other resources"),
    wide=table_rows.node_wide,
)
EVENTS = _resource(
    "Event",
    columns=("last seen", "type", "reason", "object", "message"),
    row=table_rows.event_row,
    order=lambda event: str(event.get("lastTimestamp")),
    names_namespace=True,
)
RESOURCES = (
    NODES,
    _resource(
        "Namespace",
        columns=("name", "age", "labels"),
        row=table_rows.labelled_row,
    ),
    PODS,
    _resource(
        "ResourceQuota",
        columns=("name", "age", "used/hard"),
        row=table_rows.quota_row,
    ),
    _resource(
        "PodGroup",
        columns=("name", "phase", "min member", "scheduled", "running", "age"),
        row=table_rows.pod_group_row,
    ),
    *(_kept(KINDS[name]) for name, *_ in DECLARED_KINDS),
    EVENTS,
    Resource(
        plural="clusters",
        kind="Cluster",
        of_server=True,
        columns=("name", "revision", "nodes", "pods", "pending"),
        row=table_rows.cluster_row,
    ),
)
