"""The fields that objects have in each version of Kubernetes.

They are read from the descriptions that Kubernetes generates of its types, in a clone of
`kubernetes/api`. `python -m tools.manifests.versions CLONE` writes them anew; a version that has not
been released yet is taken from its newest tag before the release.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

TAGS = {"1.35": "v0.35.4", "1.36": "v0.36.3", "1.37": "v0.37.0-beta.0"}
"""The tag of `kubernetes/api` that each version is read from."""

FILE = Path(__file__).with_name("kubernetes_fields.json")

_PACKAGES = ("core/v1", "scheduling/v1")
_GROUPS = {
    "1.35": "scheduling/v1alpha1",
    "1.36": "scheduling/v1alpha2",
    "1.37": "scheduling/v1alpha3",
}
"""The package that has Workloads and PodGroups in each version; their types are stored with a prefix,
since some are called like those of other packages."""
GROUPS = "scheduling."
"""The prefix."""
_DEVICES = "resource/v1"
"""The package of claims to devices, whose types have a prefix as well."""
DEVICES = "resource."
"""The prefix of these types."""
_TYPE = re.compile(r"var map_(\w+) = map\[string\]string\{\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r'^\t"(\w+)":', re.MULTILINE)

Fields = Mapping[str, Mapping[str, Sequence[str]]]
"""For each version the fields of each type."""


@cache
def stored() -> Fields:
    """The fields as they were read last."""
    fields: Fields = json.loads(FILE.read_text())
    return fields


def gathered(clone: Path, types: Sequence[str]) -> Fields:
    """The fields of some types as a clone has them."""
    return {
        version: {name: fields for name, fields in _types(clone, version).items() if name in types}
        for version in TAGS
    }


def _types(clone: Path, version: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for package in _PACKAGES:
        found |= _types_of(clone, TAGS[version], package)
    groups = _types_of(clone, TAGS[version], _GROUPS[version])
    found |= {f"{GROUPS}{name}": fields for name, fields in groups.items()}
    devices = _types_of(clone, TAGS[version], _DEVICES)
    found |= {f"{DEVICES}{name}": fields for name, fields in devices.items()}
    return dict(sorted(found.items()))


def _types_of(clone: Path, tag: str, package: str) -> dict[str, list[str]]:
    path = f"{tag}:{package}/types_swagger_doc_generated.go"
    text = subprocess.run(
        ["git", "-C", str(clone), "show", path], capture_output=True, text=True, check=True
    ).stdout
    return {name: sorted(_FIELD.findall(body)) for name, body in _TYPE.findall(text)}


if __name__ == "__main__":
    from tools.manifests.answers import PLACES

    read = gathered(Path(sys.argv[1]), [place.type_name for place in PLACES])
    FILE.write_text(json.dumps(read, indent=1) + "\n")
