"""The fields that objects have in each version of Kubernetes.

They are read from the descriptions that Kubernetes generates of its types, in the Go modules
`k8s.io/api` and `k8s.io/apimachinery`, which `go mod download k8s.io/api@v0.37.2` stores under
`$(go env GOMODCACHE)/k8s.io`. `python -m tools.manifests.sources FOLDER` reads them there.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

TAGS = {"1.35": "v0.35.4", "1.36": "v0.36.3", "1.37": "v0.37.2"}
"""The version of both modules that each version of Kubernetes is read from."""

FILE = Path(__file__).with_name("kubernetes_fields.json")

_META = "apimachinery/pkg/apis/meta/v1"
_PACKAGES = (
    _META,
    *(f"api/{group}/v1" for group in ("core", "apps", "node", "policy", "scheduling", "storage")),
)
_GROUPS = {
    "1.35": ("api/scheduling/v1alpha1",),
    "1.36": ("api/scheduling/v1alpha2",),
    "1.37": ("api/scheduling/v1alpha3", "api/scheduling/v1beta1"),
}
"""The packages that have Workloads and PodGroups in each version; their types are stored with a
prefix, since some are called like those of other packages."""
GROUPS = "scheduling."
"""The prefix."""
IN_WORKLOAD = "WorkloadPodGroup"
"""The name under which the PodGroup of v1alpha1 is stored, which is a part of a Workload there."""
_DEVICES = "api/resource/v1"
"""The package of claims to devices, whose types have a prefix as well."""
DEVICES = "resource."
"""The prefix of these types."""
_TYPE = re.compile(r"var map_(\w+) = map\[string\]string\{\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r'^\t"(\w+)":', re.MULTILINE)

Fields = Mapping[str, Mapping[str, Sequence[str]]]
"""For each version the fields of each type."""


@cache
def stored() -> Fields:
    """Return the fields as they were read last."""
    fields: Fields = json.loads(FILE.read_text())
    return fields


def gathered(modules: Path, types: Sequence[str]) -> Fields:
    """Return the fields of some types as the modules under a folder have them.

    Raises:
        OSError: a module has not been downloaded.
        ValueError: two packages have one of the types with different fields.
    """
    return {version: _gathered(modules, version, frozenset(types)) for version in TAGS}


def _gathered(modules: Path, version: str, types: frozenset[str]) -> dict[str, list[str]]:
    gathered: dict[str, list[str]] = {}
    for package in packages(version):
        for name, fields in _types_of(modules, version, package).items():
            if name in types and gathered.setdefault(name, fields) != fields:
                raise ValueError(f"{name} has different fields in two packages")
    return dict(sorted(gathered.items()))


def packages(version: str) -> Sequence[str]:
    """Return the packages that the types of a version are read from."""
    return (*_PACKAGES, *_GROUPS[version], _DEVICES)


def folder(modules: Path, version: str, package: str) -> Path:
    """Return the folder of a package in the modules that were downloaded."""
    module, _, path = package.partition("/")
    return modules / f"{module}@{TAGS[version]}" / path


def _types_of(modules: Path, version: str, package: str) -> dict[str, list[str]]:
    text = (folder(modules, version, package) / "types_swagger_doc_generated.go").read_text()
    return {
        stored_name(name, package): sorted(_FIELD.findall(body))
        for name, body in _TYPE.findall(text)
    }


def stored_name(name: str, package: str) -> str:
    """Return the name under which a type of a package is stored."""
    if package == _DEVICES:
        return DEVICES + name
    if not any(package in packages for packages in _GROUPS.values()):
        return name
    in_workload = name == "PodGroup" and package.endswith("v1alpha1")
    return GROUPS + (IN_WORKLOAD if in_workload else name)
