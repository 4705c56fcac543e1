"""Limits on the rules and resources of one pod, summed over all its lists.

Each of them costs the scheduler memory: counters for terms and constraints, a column over all nodes
for each label and resource, and an index entry for each value. Kubernetes limits only the size of a
manifest.
"""

from collections.abc import Iterator

from service.model.core.validators import (
    Limits,
    Problems,
    Record,
    at,
    entries_of,
    items_of,
)

_POD_RULES = ("podAffinity", "podAntiAffinity")
_POD_SELECTORS = ("labelSelector", "namespaceSelector", "exceptNamespaceSelector")


class _Asked:
    """The totals of the items that a pod's spec lists."""

    def __init__(self, spec: Record) -> None:
        self.terms = 0
        self.expressions = 0
        self.values = 0
        self.keys: set[str] = set()
        self.constraints = 0
        self.resources: set[str] = set()
        self.ports = 0
        affinity = entries_of(spec.get("affinity"))
        for kind in _POD_RULES:
            for term in _listed(affinity.get(kind)):
                self._add_pod_term(entries_of(term.get("podAffinityTerm") or term))
        for term in _listed(affinity.get("nodeAffinity")):
            self._add_node_term(term)
        for connection in items_of(spec.get("connections")):
            self._add_pod_term(entries_of(connection))
        self._add_constraints(spec)
        self._add_node_labels(entries_of(spec.get("nodeSelector")))
        self._add_containers(spec)

    def _add_pod_term(self, term: Record) -> None:
        self.terms += 1
        self.values += len(items_of(term.get("namespaces")))
        self._add_selectors(term)

    def _add_node_term(self, term: Record) -> None:
        """Add a preferred term of node affinity, or the required node selector.

        The terms of a node selector are cheap, so only their requirements are counted.
        """
        alternatives = items_of(term.get("nodeSelectorTerms"))
        self.terms += not alternatives
        for alternative in alternatives or [term.get("preference")]:
            fields = entries_of(alternative)
            self.expressions += not fields
            self._add_expressions(items_of(fields.get("matchFields")))
            self._add_expressions(items_of(fields.get("matchExpressions")), of_nodes=True)

    def _add_constraints(self, spec: Record) -> None:
        for constraint in items_of(spec.get("topologySpreadConstraints")):
            self.constraints += 1
            self._add_selectors(entries_of(constraint))

    def _add_node_labels(self, labels: Record) -> None:
        self.expressions += len(labels)
        self.keys.update(labels)

    def _add_containers(self, spec: Record) -> None:
        parts = [spec.get("resources"), {"requests": spec.get("overhead")}]
        for field in ("initContainers", "containers"):
            for container in map(entries_of, items_of(spec.get(field))):
                parts.append(container.get("resources"))
                for port in map(entries_of, items_of(container.get("ports"))):
                    self.ports += bool(port.get("hostPort"))
        for part in map(entries_of, parts):
            self.resources.update(entries_of(part.get("requests")), entries_of(part.get("limits")))

    def _add_selectors(self, rule: Record) -> None:
        """Add the selectors and the topology key of a term or constraint."""
        key = rule.get("topologyKey")
        if isinstance(key, str):
            self.keys.add(key)
        for name in _POD_SELECTORS:
            selector = entries_of(rule.get(name))
            labels = entries_of(selector.get("matchLabels"))
            self.expressions += len(labels)
            self.values += len(labels)
            self._add_expressions(items_of(selector.get("matchExpressions")))
        for name in ("matchLabelKeys", "mismatchLabelKeys"):
            self.expressions += len(items_of(rule.get(name)))

    def _add_expressions(self, expressions: list[object], *, of_nodes: bool = False) -> None:
        self.expressions += len(expressions)
        for expression in map(entries_of, expressions):
            self.values += len(items_of(expression.get("values")))
            key = expression.get("key")
            if of_nodes and isinstance(key, str):
                self.keys.add(key)


def _listed(rules: object) -> Iterator[Record]:
    """Yield the items of all lists of an affinity, required and preferred."""
    for value in entries_of(rules).values():
        for entry in items_of(value) or [value]:
            if entries_of(entry):
                yield entries_of(entry)


def check_pod_limits(spec: Record, path: str, problems: Problems) -> None:
    """Add an error for each limit that a pod's spec exceeds."""
    for field, count, name, thing in _counts(_Asked(spec)):
        most = getattr(problems.limits, name)
        if count > most:
            message = f"has {count} {thing}, over the limit ({name}) of {most}"
            problems.add(at(path, field), message, count)


def exceeds(spec: Record, limits: Limits) -> bool:
    """Return whether a spec exceeds the limits for a new pod."""
    problems = Problems(limits)
    check_pod_limits(spec, "spec", problems)
    return bool(problems.errors)


def _counts(asked: _Asked) -> tuple[tuple[str, int, str, str], ...]:
    """Return each limit as its field, the pod's total, the limit's name, and the items counted."""
    affinity, constraints, containers = "affinity", "topologySpreadConstraints", "containers"
    return (
        (affinity, asked.terms, "pod_terms_max", "affinity terms"),
        (affinity, asked.expressions, "pod_expressions_max", "requirements in all selectors"),
        (affinity, asked.values, "pod_values_max", "values in all selectors"),
        (affinity, len(asked.keys), "pod_topology_keys_max", "different labels of nodes"),
        (constraints, asked.constraints, "pod_constraints_max", "constraints"),
        (containers, len(asked.resources), "pod_resources_max", "different resources"),
        (containers, asked.ports, "pod_ports_max", "host ports"),
    )
