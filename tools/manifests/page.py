"""Writes the page of the fields of manifests."""

from collections.abc import Iterable
from textwrap import fill

from service.model.core.field_warnings import WARNINGS
from service.model.registry.kinds import DECLARED_KINDS
from tools.manifests.answers import Field, fields, own
from tools.manifests.versions import TAGS, stored

KINDS = (
    "Pod",
    "Node",
    "ResourceQuota",
    "PriorityClass",
    "PodGroup",
    "Workload",
    "DeviceClass",
    "ResourceSlice",
    "ResourceClaim",
)

_HEAD = """\
# What becomes of each field of a manifest

A field of a manifest is honoured, refused with its path, or answered with a warning. None that
means something to scheduling is dropped in silence ([why](decisions/warnings.md)). This page is
written by `python -m tools.manifests` from the declarations by which manifests are decoded. A test
checks that it is current, and that no field of Kubernetes is undecided.

| answer | meaning |
|---|---|
| honoured | it is decoded, and means what it means in Kubernetes v1.35 |
| refused | the request is refused, with the path of the field |
| warned | it is kept and returned, but passed over; the answer has a warning of this code |

The fields are those of these versions of Kubernetes, as the tags of `kubernetes/api` have them:
{versions}.
A field that is not in all of them has its versions in the third column. Lists of the same type are
shown once: init containers are answered as containers are, and all terms as the first kind of term.
PodGroups and Workloads are those of `scheduling.k8s.io`: of v1alpha1 in 1.35, v1alpha2 in 1.36, and
v1alpha3 in 1.37. The final v1beta1 of 1.37 has not been read, only its types of July 2026, which
have the fields of v1alpha3.
Slices, classes and claims of devices are those of `resource.k8s.io/v1`. They are also taken as
v1beta2, which has the same fields, and classes as v1beta1. A ResourceClaimTemplate has the fields
of a claim's `spec` in its `spec.spec`, and they are answered alike.
Of all objects name, namespace, labels and deletion are honoured; of a namespace nothing else is
read.
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

_KEPT = """\
## Kept and returned

Kubernetes' scheduling does not read these fields either. They are kept and returned as they are,
and so is everything else that is in none of the lists.

| in | fields |
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
`kind`; among these are the CompositePodGroups of `scheduling.k8s.io`. A
limit of a ResourceQuota on anything but pods and what they use is warned about (`QuotaNotCharged`),
and so is a `schedulerName` that is no profile of the cluster (`UnknownScheduler`).
"""


def page() -> str:
    """The whole page."""
    read = list(fields(stored()))
    kinds = [_kind(kind, (each for each in read if each.kind == kind)) for kind in KINDS]
    versions = ", ".join(f"v{version} ({tag})" for version, tag in TAGS.items())
    head = _HEAD.format(versions=versions)
    foot = _FOOT.format(kept=_filled(_OBJECTS.format(kinds=", ".join(DECLARED_KINDS))))
    rest = [_OWN + _own(), _WARNINGS + _codes(), _KEPT + _kept(read), foot]
    return "\n".join([head, *kinds, *rest])


def _filled(text: str) -> str:
    return fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _kind(kind: str, read: Iterable[Field]) -> str:
    rows = "".join(_row(each) for each in read if each.answer != "kept")
    return f"## {kind}\n\n| field | answer | versions |\n|---|---|---|\n{rows}"


def _row(field: Field) -> str:
    versions = "" if len(field.versions) == len(TAGS) else ", ".join(field.versions)
    return f"| `{field.path}` | {_answer(field)} | {versions} |\n"


def _answer(field: Field) -> str:
    if field.warning is None:
        return field.answer
    setting, told = field.warning.setting, f"warned: `{field.warning.code}`"
    if not setting:
        return told
    return f"honoured; with `{setting}: Refuse` refused, with `{setting}: Ignore` {told}"


def _own() -> str:
    return "".join(f"| `{path}` |\n" for path in own(stored()))


def _codes() -> str:
    return "".join(f"| `{code}` | {kind.message} |\n" for code, kind in WARNINGS.items())


def _kept(read: Iterable[Field]) -> str:
    by_place: dict[str, list[str]] = {}
    for each in read:
        if each.answer == "kept":
            place, _, name = each.path.rpartition(".")
            by_place.setdefault(f"{each.kind} `{place}`", []).append(f"`{name}`")
    return "".join(f"| {place} | {', '.join(names)} |\n" for place, names in by_place.items())
