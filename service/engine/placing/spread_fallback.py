"""Topology spread constraints that are hard only while there is room: `FallbackWhenFull`.

`service.engine.placing.placement.resolve_fallbacks` turns each such constraint into a hard or a
soft one before the pod is judged, so no other code handles them, and pods without them cost nothing
extra. For a placed pod, they count as soft, because they may have fallen back.
"""

from msgspec.structs import replace

from service.engine.state.pods.classes import FALLBACK, Template
from service.model.pods.pod import Pod, PodSpec


def fallbacks(pod: Pod) -> tuple[int, ...]:
    """Return the indexes of a pod's fallback constraints."""
    constraints = pod.spec.topology_spread_constraints
    return tuple(
        index
        for index, constraint in enumerate(constraints)
        if constraint.when_unsatisfiable == FALLBACK
    )


def variant(pod: Pod, template: Template, hard: tuple[int, ...]) -> Pod:
    """Return the pod with these fallback constraints made hard and all others made soft.

    The pod's template caches the spec, because specs are identified by object.
    """
    spec = template.variants.get(hard)
    if spec is None:
        spec = template.variants[hard] = _variant(pod.spec, hard)
    return replace(pod, spec=spec)


def _variant(spec: PodSpec, hard: tuple[int, ...]) -> PodSpec:
    constraints = tuple(
        replace(
            constraint, when_unsatisfiable="DoNotSchedule" if index in hard else "ScheduleAnyway"
        )
        if constraint.when_unsatisfiable == FALLBACK
        else constraint
        for index, constraint in enumerate(spec.topology_spread_constraints)
    )
    return replace(spec, topology_spread_constraints=constraints)
