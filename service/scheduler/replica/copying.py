"""Copies replicas in memory, sharing manifests but not counters."""

from collections.abc import Generator, Mapping, Sequence

from service.model.core.primitives import CLUSTER_KIND
from service.model.registry.manifests import TemplateCache
from service.scheduler.replica.replica import Replica, Stored
from service.scheduler.replica.stored_kinds import ConfigManifest

_STEP_OBJECTS = 25


def copy_replica(
    objects: Mapping[str, Sequence[Stored]],
    templates: TemplateCache,
    config: ConfigManifest | None = None,
) -> Generator[None, None, Replica]:
    """Create a replica of objects by kind, step by step, optionally with another configuration.

    The configuration affects how all other objects are compiled, so it comes first; the others
    follow in the order of their kinds, as in a load.
    """
    replica = Replica(templates)
    if config is not None:
        replica.adopt((Stored(config, 0),))
    for kind in sorted(objects, key=lambda kind_name: (kind_name != CLUSTER_KIND, kind_name)):
        if kind == CLUSTER_KIND and config is not None:
            continue
        of_kind = objects[kind]
        for start in range(0, len(of_kind), _STEP_OBJECTS):
            replica.adopt(of_kind[start : start + _STEP_OBJECTS])
            yield
    return replica
