"""Writes the page of the fields of manifests."""

from collections.abc import Iterable, Mapping
from textwrap import fill

from service.model.core.field_warnings import WARNINGS
from service.model.registry.kinds import DECLARED_KINDS
from tools.manifests.answers import Field, fields, own
from tools.manifests.gates import ABSENT, stored as stored_gates
from tools.manifests.places import PLACES
from tools.manifests.versions import TAGS, stored

_ALIKE = frozenset({"Namespace", "ResourceClaimTemplate"})
"""Kinds without a section, since the head says everything about them."""
KINDS = tuple(kind for kind in dict.fromkeys(place.kind for place in PLACES) if kind not in _ALIKE)
"""The kinds that have a section, in the order in which the page shows them."""

_HEAD = """\
# What becomes of each field of a manifest

A field of a manifest is honoured, refused with its path, or answered with a warning. None that
means something to scheduling is dropped in silence ([why](decisions/warnings.md)). This page is
written by `python -m tools.manifests` from the declarations by which manifests are decoded. A test
checks that it is current, and that no field of Kubernetes is undecided.

| answer | meaning |
|---|---|
| honoured | it is decoded, and means what it means in Kubernetes |
| refused | the request is refused, with the path of the field |
| warned | it is kept and returned, but not read; the answer has a warning of this code |
| computed | Moorage writes it itself, and ignores it where it is sent |

Fields that scheduling has no use for are [kept and returned](#kept-and-returned).

The fields are those of these versions of Kubernetes, as the Go module `k8s.io/api` has them:
{versions}.
A field that is not in all of them has its versions in the third column. Lists of the same type are
shown once: init containers are answered as containers are, and all terms as the first kind of term.
PodGroups and Workloads are those of `scheduling.k8s.io`: of v1alpha1 in 1.35, v1alpha2 in 1.36, and
v1alpha3 and v1beta1 in 1.37, which have the same fields. CompositePodGroups, which only v1alpha3
has, are refused, and so are the fields that belong to them.
Slices, classes and claims of devices are those of `resource.k8s.io/v1`. They are also accepted as
v1beta2, which has the same fields, and as v1beta1, which holds those of a request and of a device
elsewhere: slices and claims of v1beta1 are stored and returned as objects of v1, and errors name
the fields of v1. A ResourceClaimTemplate has the fields of a claim's `spec` in its `spec.spec`, and
they are answered alike. All other kinds have one API version in 1.35 to 1.37. Of a namespace, only
its metadata is read.
"""

_WARNINGS = """\
## Warnings

An answer to a write, a placement or a simulation has a list `warnings` (`field`, `code`,
`message`) if there are any, and a header `Warning` as Kubernetes writes it. The page
`/warnings/<code>` of every server says more.

| code | the field … |
|---|---|
"""

_OWN = """\
## Moorage's own fields

These fields are honoured ([how](semantics.md)), and Kubernetes does not have them: it refuses a
manifest with one, or drops the field with a warning. All terms are shown as the first kind of term
here, too: `maxPerDomain` is for required anti-affinity alone, `firstPodExempt` for required
affinity, but not during execution, `toleranceSeconds` for affinity that is required during
execution, and elsewhere they are refused. Where a pod's type cannot hold them,
the annotation `rules.moorage.dev/v1alpha1` can.

| field |
|---|
"""

_GATES = """\
## Fields behind feature gates

Where a gate is off, kube-apiserver drops its fields from new objects. These gates are not on by
default in all of the versions. The last column has their fields, by what Moorage does with them.

| gate | {versions} | fields |
|---|{rules}|---|
"""

_KEPT = """\
## Kept and returned

Kubernetes' scheduling does not read these fields either. They are kept and returned as they are,
with everything in them, and so is everything else that is in none of the lists.

| in | fields |
|---|---|
"""

_REASONS = """\

Some of them may be expected to matter:

| field | why it is not read |
|---|---|
"""

_FOOT = """\
## Other objects

{kept}
"""
_OBJECTS = """\
Moorage keeps the kinds Node, Namespace, Pod, ResourceQuota, {kinds}, and the PodGroups of
`scheduling.x-k8s.io/v1alpha1`, of which `spec.minMember` and `spec.scheduleTimeoutSeconds` are
honoured, and `spec.minResources` is warned about (`MinResourcesIgnored`); those of
`scheduling.k8s.io` are kept beside them, as shown above. A PriorityClass becomes
an entry of the cluster's setting `priorityClasses`. Kubernetes has no kinds DataSet and Plan. An object of any other kind is refused, naming
`kind`; among these are the CompositePodGroups of `scheduling.k8s.io` and the DeviceTaintRules of
`resource.k8s.io`. VolumeAttributesClasses need not be kept: scheduling compares only their names. A
limit of a ResourceQuota on anything but pods and what they use is warned about (`QuotaNotCharged`),
and so is a `schedulerName` that is no profile of the cluster (`UnknownScheduler`).
"""


def page() -> str:
    """The whole page."""
    read = list(fields(stored()))
    kinds = [_kind(kind, (field for field in read if field.kind == kind)) for kind in KINDS]
    versions = ", ".join(f"v{version} ({tag})" for version, tag in TAGS.items())
    head = _HEAD.format(versions=versions)
    foot = _FOOT.format(kept=_filled(_OBJECTS.format(kinds=", ".join(DECLARED_KINDS))))
    rest = [
        _OWN + _own(),
        _WARNINGS + _codes(),
        _gates(read),
        _KEPT + _kept(read) + _REASONS + _reasons(read),
        foot,
    ]
    return "\n".join([head, *kinds, *rest])


def _filled(text: str) -> str:
    return fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _kind(kind: str, read: Iterable[Field]) -> str:
    rows = "".join(_row(field) for field in read if field.answer != "kept")
    return f"## {kind}\n\n| field | answer | versions |\n|---|---|---|\n{rows}"


_REFUSABLE = frozenset({"deviceClaims"})
"""The settings that also have the value `Refuse`."""


def _row(field: Field) -> str:
    versions = "" if len(field.versions) == len(TAGS) else ", ".join(field.versions)
    return f"| `{field.path}` | {_answer(field)} | {versions} |\n"


def _answer(field: Field) -> str:
    if field.warning is None:
        return field.answer
    setting, told = field.warning.setting, f"warned: `{field.warning.code}`"
    if not setting:
        return told
    if setting == "kubernetes":
        return f"honoured; in versions that have the feature off {told}"
    refused = f" refused, with `{setting}: Refuse`;" if setting in _REFUSABLE else ""
    return f"honoured;{refused} {told}, with `{setting}: Ignore`"


def _own() -> str:
    return "".join(f"| `{path}` |\n" for path in own(stored()))


def _gates(read: Iterable[Field]) -> str:
    gates = stored_gates()
    fields: dict[str, dict[str, list[str]]] = {}
    for field in read:
        gate = gates["fields"].get(field.type_name, {}).get(field.path.rpartition(".")[2])
        if gate is not None and not _is_always_on(gate):
            answer = "honoured" if field.answer == "honoured or not" else field.answer
            paths = fields.setdefault(gate, {}).setdefault(answer, [])
            paths.append(f"{field.kind} `{field.path}`")
    rows = (
        f"| {gate} | {' | '.join(gates['defaults'][gate].values())} | {_by_answer(paths)} |\n"
        for gate, paths in sorted(fields.items())
    )
    head = _GATES.format(versions=" | ".join(TAGS), rules="|".join("---" for _ in TAGS))
    return head + "".join(rows)


def _is_always_on(gate: str) -> bool:
    defaults = set(stored_gates()["defaults"][gate].values())
    return defaults == {ABSENT} or all(default.startswith("on") for default in defaults)


def _by_answer(paths: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{answer}: {', '.join(fields)}" for answer, fields in paths.items())


def _codes() -> str:
    return "".join(f"| `{code}` | {kind.message} |\n" for code, kind in WARNINGS.items())


def _kept(read: Iterable[Field]) -> str:
    by_place: dict[str, list[str]] = {}
    for field in read:
        if field.answer == "kept":
            place, _, name = field.path.rpartition(".")
            where = f"{field.kind} `{place}`" if place else field.kind
            by_place.setdefault(where, []).append(f"`{name}`")
    return "".join(f"| {place} | {', '.join(names)} |\n" for place, names in by_place.items())


def _reasons(read: Iterable[Field]) -> str:
    return "".join(
        f"| {field.kind} `{field.path}` | {field.reason} |\n" for field in read if field.reason
    )
