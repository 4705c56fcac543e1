"""Examples of all problem documents."""

from collections.abc import Mapping, Sequence

import msgspec

from service.api.http.problems import PROBLEMS, Problem
from service.model.core.errors import FieldError

_PLACEMENTS = "/v1/clusters/default/placements"
_BINDING = "/v1/clusters/default/namespaces/shop/pods/web-0/binding"
_EVICTION = "/v1/clusters/default/namespaces/shop/pods/web-0/eviction"
_UNFIT = "node(s) didn't match pod anti-affinity rules"

_ERRORS: Mapping[str, Sequence[FieldError]] = {
    "InvalidManifest": [
        FieldError(
            field="pods[0].spec.affinity.podAntiAffinity."
            "requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            message="is required",
        )
    ],
    "MalformedRequest": [
        FieldError(field="limit", message="has to be an integer of at least 0", value="ten")
    ],
    "BindingViolated": [
        FieldError(
            field="spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]",
            message=f"{_UNFIT} (in conflict with shop/db-0)",
        )
    ],
    "FieldManagerConflict": [
        FieldError(
            field="spec.containers[name=app].image",
            message="is managed by autoscaler (Apply)",
            value="autoscaler",
        )
    ],
}
"""The field errors in the examples of problems that list fields."""
_REASONS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "BindingRefused": {"InterPodAffinity": [_UNFIT]},
    "EvictionBlocked": {
        "DisruptionBudget": ["The disruption budget web needs 2 healthy pods and has 2 currently"]
    },
}


def example_of(code: str) -> object:
    """Return the example of one problem code as decoded JSON."""
    kind = PROBLEMS[code]
    problem = Problem(
        type=f"/errors/{code}",
        code=code,
        title=kind.title,
        status=kind.status,
        detail=f"{kind.meaning.partition('. ')[0].removesuffix('.')}.",
        instance=_asked(code),
        errors=[*_ERRORS[code]] if code in _ERRORS else None,
        reasons={name: [*texts] for name, texts in _REASONS[code].items()}
        if code in _REASONS
        else None,
    )
    return msgspec.to_builtins(problem)


def _asked(code: str) -> str:
    if code == "EvictionBlocked":
        return _EVICTION
    return _BINDING if code.startswith("Binding") else _PLACEMENTS
