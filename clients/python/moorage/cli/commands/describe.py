"""`moorage describe`: show one object in full, with its events."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
import yaml

from moorage.cli.exceptions import Refused
from moorage.cli.render.explanations import print_in_short
from moorage.cli.render.output import Output
from moorage.cli.render.rows import Clock, Item, event_row, pod_state, sizes_of, taints_of
from moorage.cli.session.hints import suggest_namespaces
from moorage.cli.session.node_usage import Usage, usage_of_nodes
from moorage.cli.session.options import (
    AllNamespaces,
    LabelSelector,
    OneNamespace,
    Session,
    connected,
)
from moorage.cli.session.resources import (
    EVENTS,
    PODS,
    Resource,
    complete_kind,
    find_resource,
    read_targets,
)

LABEL_WIDTH = 20
IN_HEADING = frozenset({"apiVersion", "kind", "metadata", "name"})

Fields = Iterable[tuple[str, object]]


@connected
def describe(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND [NAME…] | KIND/NAME…",
            help="What to describe, as in `get`; without names all of the kind.",
            autocompletion=complete_kind,
        ),
    ],
    namespace: OneNamespace = None,
    all_namespaces: AllNamespaces = False,
    selector: LabelSelector = None,
) -> None:
    """Show objects in full: what they ask for, where they are or why they wait, and their events."""
    within = None if all_namespaces else namespace or session.namespace
    entries = []
    for target in read_targets(what, within):
        path = target.path(session.client)
        if target.name is not None:
            with suggest_namespaces(session, target):
                entries.append((target.resource, session.client.get(path)))
            continue
        if target.resource.of_server:
            pages: Iterable[list[Any]] = [session.client.get(path)["items"]]
        else:
            pages = session.client.pages(path, {"labelSelector": selector})
        entries += [(target.resource, item) for page in pages for item in page]
    if not session.output.for_people:
        items = [item for _, item in entries]
        session.output.document(items[0] if len(items) == 1 else {"items": items})
        return
    if not entries:
        session.output.note("Nothing found.")
    clock = Clock(datetime.now(UTC))  # noqa: TID251 - the user's own time
    for number, (resource, item) in enumerate(entries):
        if number:
            session.output.line()
            session.output.line()
        _Description(session, clock).show(resource, item)


class _Description:
    """Prints one object."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._output = session.output
        self._clock = clock

    def show(self, resource: Resource, item: Item) -> None:
        """Print everything known about an object."""
        _print_fields(self._output, self._heading(item))
        if resource.kind == "Pod":
            self._show_pod(item)
        elif resource.kind == "Node":
            self._show_node(item)
        elif resource.kind == "Namespace":
            self._show_namespace(item)
        else:
            rest = {key: value for key, value in item.items() if key not in IN_HEADING}
            _print_yaml(
                self._output, dict(sorted(rest.items(), key=lambda part: part[0] == "config"))
            )

    def _heading(self, item: Item) -> Fields:
        metadata = item.get("metadata", item)
        yield "Name", metadata["name"]
        if metadata.get("namespace"):
            yield "Namespace", metadata["namespace"]
        if "metadata" not in item:
            return
        yield "Labels", _pairs(metadata.get("labels"), "=")
        yield "Annotations", _pairs(metadata.get("annotations"), ": ")
        if created := metadata.get("creationTimestamp"):
            yield "Created", f"{created} ({self._clock.age(item)} ago)"
        if deleted := metadata.get("deletionTimestamp"):
            yield "To be deleted", deleted
        for owner in metadata.get("ownerReferences") or ():
            label = "Controlled by" if owner.get("controller") else "Owned by"
            yield label, f"{owner['kind']}/{owner['name']}"

    def _show_pod(self, pod: Item) -> None:
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        fields = (
            ("State", pod_state(pod)),
            ("Node", spec.get("nodeName")),
            ("Nominated node", status.get("nominatedNodeName")),
            ("Priority", _priority(spec)),
            ("Scheduler", spec.get("schedulerName")),
        )
        _print_fields(self._output, [field for field in fields if field[1] is not None])
        _print_fields(self._output, _requests(spec))
        _print_fields(
            self._output, [("Tolerations", map(_toleration, spec.get("tolerations") or ()))]
        )
        rules = ("nodeSelector", "affinity", "topologySpreadConstraints", "schedulingGates")
        _print_yaml(self._output, {rule: spec[rule] for rule in rules if spec.get(rule)})
        self._show_conditions(status.get("conditions") or ())
        self._show_placement(pod)
        self._show_events(pod)

    def _show_conditions(self, conditions: Sequence[Mapping[str, Any]]) -> None:
        if not conditions:
            return
        _print_heading(self._output, "Conditions")
        names = ("type", "status", "reason", "message")
        rows = (
            [f"  {condition.get('type')}", *(condition.get(name) for name in names[1:])]
            for condition in conditions
        )
        self._output.table(("  type", *names[1:]), rows)

    def _show_placement(self, pod: Item) -> None:
        if pod_state(pod) not in {"Placed", "Pending"}:
            return
        metadata = pod["metadata"]
        path = PODS.path(self._session.client, metadata["namespace"], metadata["name"])
        _print_heading(self._output, "Placement")
        try:
            explanation = self._session.client.get(f"{path}/explanation")
        except Refused as error:
            self._output.prose(f"  {error}")
            return
        print_in_short(self._output, explanation, pod.get("spec", {}).get("nodeName"))
        self._output.prose(
            f"  `moorage explain {metadata['namespace']}/{metadata['name']}` tells all."
        )

    def _show_events(self, item: Item) -> None:
        metadata = item["metadata"]
        about = {"name": metadata["name"], "uid": metadata.get("uid")}
        fields = (f"involvedObject.{name}={value}" for name, value in about.items() if value)
        path = EVENTS.path(self._session.client, metadata["namespace"])
        pages = self._session.client.pages(path, {"fieldSelector": ",".join(fields)})
        events = sorted((event for page in pages for event in page), key=EVENTS.order)
        if not events:
            _print_fields(self._output, [("Events", None)])
            return
        _print_heading(self._output, "Events")
        rows = (event_row(event, self._clock) for event in events)
        self._output.table(
            ("  last seen", "type", "reason", "count", "message"),
            (
                (f"  {seen}", kind, reason, event.get("count"), message)
                for event, (seen, kind, reason, _, message) in zip(events, rows, strict=True)
            ),
        )

    def _show_node(self, node: Item) -> None:
        cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        fields = [("Taints", taints_of(node)), ("Unschedulable", "yes" if cordoned else "no")]
        _print_fields(self._output, fields)
        name = node["metadata"]["name"]
        usage = usage_of_nodes(self._session.client).get(name)
        if usage is not None:
            self._show_usage(node, usage)
        self._show_pods_on(name)
        rest = {
            key: value
            for key, value in (node.get("status") or {}).items()
            if key not in {"allocatable", "capacity"}
        }
        _print_yaml(self._output, rest)

    def _show_usage(self, node: Item, usage: Usage) -> None:
        _print_heading(self._output, "Resources")
        capacity = (node.get("status") or {}).get("capacity") or {}
        self._output.table(
            ("  resource", "capacity", "allocatable", "used", "used %", "free"),
            (
                (f"  {name}", capacity.get(name), size, *usage.shown(name, size))
                for name, size in sizes_of(node).items()
            ),
        )

    def _show_pods_on(self, node: str) -> None:
        path = PODS.path(self._session.client, None)
        pages = self._session.client.pages(path, {"nodeName": node})
        pods = [pod for page in pages for pod in page]
        if not pods:
            _print_fields(self._output, [("Pods", None)])
            return
        _print_heading(self._output, f"Pods ({len(pods)})")
        self._output.table(
            ("  namespace", "name", "state", "cpu requests", "memory requests", "age"),
            (
                (
                    f"  {pod['metadata'].get('namespace')}",
                    pod["metadata"]["name"],
                    pod_state(pod),
                    *(_requested(pod, resource) for resource in ("cpu", "memory")),
                    self._clock.age(pod),
                )
                for pod in pods
            ),
        )

    def _show_namespace(self, namespace: Item) -> None:
        name = namespace["metadata"]["name"]
        quotas = find_resource("resourcequotas")
        pages = self._session.client.pages(quotas.path(self._session.client, name))
        items = [quota for page in pages for quota in page]
        if not items:
            _print_fields(self._output, [("Quotas", None)])
            return
        _print_heading(self._output, "Quotas")
        self._output.table(
            ("  quota", "resource", "used", "limit"),
            (
                (f"  {quota['metadata']['name']}", resource, _used(quota, resource), limit)
                for quota in items
                for resource, limit in ((quota.get("spec") or {}).get("hard") or {}).items()
            ),
        )


def _print_fields(output: Output, fields: Fields) -> None:
    """Print `Label:   value`, with further values of a label below."""
    for label, value in fields:
        values = [value] if isinstance(value, str | int | None) else list(_as_values(value))
        first, *others = values or [None]
        output.line(f"{label + ':':<{LABEL_WIDTH}}{'<none>' if first is None else first}")
        for other in others:
            output.line(f"{'':<{LABEL_WIDTH}}{other}")


def _as_values(value: object) -> Iterable[object]:
    return value if isinstance(value, Iterable) else [value]


def _print_heading(output: Output, text: str) -> None:
    output.line(f"{text}:")


def _print_yaml(output: Output, parts: Mapping[str, object]) -> None:
    for name, value in parts.items():
        heading = re.sub("([A-Z])", lambda match: f" {match[1].lower()}", name).capitalize()
        if not isinstance(value, dict | list):
            _print_fields(output, [(heading, str(value))])
            continue
        _print_heading(output, heading)
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
        for line in text.splitlines():
            output.line(f"  {line}")


def _pairs(values: Mapping[str, str] | None, between: str) -> Iterable[str]:
    return [f"{key}{between}{value}" for key, value in (values or {}).items()]


def _priority(spec: Item) -> str | None:
    known = [
        str(spec[key]) for key in ("priority", "priorityClassName") if spec.get(key) is not None
    ]
    return " ".join(known) or None


def _requests(spec: Item) -> Fields:
    """Describe each container's requests and limits."""
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            resources = container.get("resources") or {}
            yield (
                "Init container" if kind == "initContainers" else "Container",
                f"{container['name']}: {_amounts('requests', resources)}, {_amounts('limits', resources)}",
            )


def _amounts(part: str, resources: Item) -> str:
    amounts = ", ".join(f"{name} {size}" for name, size in (resources.get(part) or {}).items())
    return f"{part} {amounts or 'nothing'}"


def _requested(pod: Item, resource: str) -> str | None:
    """Return what a pod's containers request of a resource, such as `1+500m`, or None."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    asked = ((container.get("resources") or {}).get("requests") or {} for container in containers)
    return "+".join(str(requests[resource]) for requests in asked if resource in requests) or None


def _used(quota: Item, resource: str) -> object:
    return ((quota.get("status") or {}).get("used") or {}).get(resource, 0)


def _toleration(toleration: Item) -> str:
    key = toleration.get("key") or "all taints"
    value = f"={toleration['value']}" if toleration.get("value") else ""
    effect = f":{toleration['effect']}" if toleration.get("effect") else ""
    seconds = toleration.get("tolerationSeconds")
    return f"{key}{value}{effect}" + (f" for {seconds}s" if seconds is not None else "")
