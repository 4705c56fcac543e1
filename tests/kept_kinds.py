"""Objects of every kind that is kept for rules, for tests that hold for all of them."""

from typing import Any

from service.model.plans.plan import PLAN
from service.model.registry.kinds import DECLARED_KINDS

Manifest = dict[str, Any]
KINDS = tuple(DECLARED_KINDS)
QUIET: Manifest = {"Plan": {"spec": {**PLAN.example["spec"], "state": "Paused"}}}
"""What is in place of the example, so that the server does nothing with the object."""


def kept(kind: str, namespace: str = "shop", name: str = "kept", **metadata: Any) -> Manifest:
    """An object as the kind's example has it."""
    declared = DECLARED_KINDS[kind]
    scope = {"namespace": namespace} if declared.namespaced else {}
    return {
        **declared.example,
        **QUIET.get(kind, {}),
        "apiVersion": declared.api_version,
        "kind": kind,
        "metadata": {"name": name, **scope, **metadata},
    }


def path_of(kind: str, namespace: str = "shop", name: str = "kept") -> str:
    """The path of an object below that of its cluster."""
    declared = DECLARED_KINDS[kind]
    scope = f"namespaces/{namespace}/" if declared.namespaced else ""
    return f"{scope}{declared.plural}/{name}"
