"""The versions that a cluster can follow, by name."""

from typing import Annotated

import msgspec

from service.model.cluster.versions.v1_35 import V1_35
from service.model.cluster.versions.v1_36 import V1_36
from service.model.cluster.versions.v1_37 import V1_37
from service.model.cluster.versions.version import SchedulerVersion

VERSIONS: dict[str, SchedulerVersion] = {version.name: version for version in (V1_35, V1_36, V1_37)}
"""The known versions by name, oldest first."""

UNNAMED = V1_35.name
"""The version of stored configurations that name none: they are older than this setting."""
NEWEST = V1_37.name
"""The version of new clusters: the newest that was compared in full with kube-scheduler."""

VersionName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(VERSIONS)})]
"""The name of a known version."""
