"""The feature gates that fields belong to, and whether they are on by default in each version.

A field is marked with its gate in the sources of `k8s.io/api`, and the defaults are in
`pkg/features` of `k8s.io/kubernetes`. kube-apiserver drops a field from new objects while its gate
is off.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tools.manifests import versions

FILE = Path(__file__).with_name("kubernetes_gates.json")

Gates = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Under `fields` the gate of each field by type, and under `defaults` the default of each gate by
version, such as `on (beta)`."""

ABSENT = "none"
"""The default of a gate in a version that does not have it."""

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_JSON = re.compile(r'json:"(\w+)')
_MARKER = re.compile(r"\+featureGate=(\w+)")
_GATE = re.compile(r"^\t(\w+): \{\n(.*?)\n\t\},", re.DOTALL | re.MULTILINE)
_STAGE = re.compile(r"Default: (\w+), PreRelease: featuregate\.(\w+)")


@cache
def stored() -> Gates:
    """Return the gates as they were read last."""
    gates: Gates = json.loads(FILE.read_text())
    return gates


def gathered(modules: Path, types: Sequence[str]) -> Gates:
    """Return the gates of the fields of some types as the modules under a folder have them."""
    fields: dict[str, dict[str, str]] = {}
    for version in versions.TAGS:
        for package in versions.packages(version):
            text = (versions.folder(modules, version, package) / "types.go").read_text()
            for type_name, body in _STRUCT.findall(text):
                name = versions.stored_name(type_name, package)
                if name in types and (marked := dict(_marked(body))):
                    fields[name] = fields.get(name, {}) | marked
    named = {gate for marked in fields.values() for gate in marked.values()}
    defaults = {version: _defaults(modules, version) for version in versions.TAGS}
    return {
        "fields": dict(sorted(fields.items())),
        "defaults": {
            gate: {version: defaults[version].get(gate, ABSENT) for version in versions.TAGS}
            for gate in sorted(named)
        },
    }


def _marked(body: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a type that are marked with a gate, and the gate."""
    comments: list[str] = []
    for line in body.splitlines():
        if line.lstrip().startswith("//"):
            comments.append(line)
            continue
        field, gates = _JSON.search(line), _MARKER.findall("\n".join(comments))
        if field is not None and gates:
            yield field[1], gates[0]
        comments = []


def _defaults(modules: Path, version: str) -> dict[str, str]:
    """Return the default and stage of each gate in a version: the last of its history."""
    tag = versions.TAGS[version].replace("v0.", "v1.")
    text = (modules / f"kubernetes@{tag}" / "pkg/features/kube_features.go").read_text()
    return {
        gate: f"{'on' if stages[-1][0] == 'true' else 'off'} ({_word(stages[-1][1])})"
        for gate, history in _GATE.findall(text)
        if (stages := _STAGE.findall(history))
    }


def _word(stage: str) -> str:
    return stage if stage == "GA" else stage.lower()
