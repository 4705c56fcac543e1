"""Manifests of pods, whose parsing is performance-critical.

Most incoming pods are compact JSON, and differ from known ones only in metadata. For them,
`parse_plain_pod` looks up the spec by its bytes and checks the metadata in a few steps. All other
pods are parsed in full by `_read_any`, which also reports errors.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.core.fast_parse import (
    BEFORE_STATUS,
    SPEC,
    Plain,
    cut,
    cut_any,
    loaded_metadata,
    plain_metadata,
)
from service.model.core.field_warnings import FieldWarnings, warnings_in_part
from service.model.core.manifest import (
    DEFAULT_NAMESPACE,
    ObjectManifest,
    head_of,
    open_draft,
)
from service.model.core.metadata import (
    Json,
    Metadata,
    fields_of,
    following,
    members_of,
    read_metadata,
    with_condition,
    with_required_node,
    without_condition,
)
from service.model.core.names import dns_subdomain
from service.model.core.strict_json import decode_strict, encode
from service.model.core.validators import Limits, Problems, entries_of, items_of
from service.model.json.patch import merge_patch
from service.model.pods.annotated_rules import ANNOTATION, annotation_of, check_annotations
from service.model.pods.pod import Pod, PodResize
from service.model.pods.pod_fields import PodCondition
from service.model.pods.pod_group import POD_GROUP_LABEL
from service.model.pods.pod_rules import POD_RULES
from service.model.pods.scheduling_groups import refuse_other_group
from service.model.pods.spec_families import known_name
from service.model.pods.status import (
    CLAIM_STATUSES,
    DISRUPTION_TARGET,
    device_claims_of,
    is_ended_with_its_node,
    is_finished,
    is_preempted,
    is_starting,
    is_unready,
    nominated_node,
    preserve_server_fields,
    resize_of,
    started_at,
)
from service.model.pods.template_cache import (
    Amendment,
    PodTemplate,
    TemplateCache,
    split_node_name,
)

_NODE_NAME = b'"nodeName":"'
_NODE_NAME_KEY = b'"nodeName"'
_NODE_NAME_FIRST = b'{"nodeName":"'
_OWN_KIND = ("Pod", "")
_STATUS_BYTES_MAX = 512

_ABSENT = object()
_NOMINATED = "nominatedNodeName"

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, object]).decode


class PodManifest(ObjectManifest, frozen=True, kw_only=True):
    """A pod; `status` is its encoded status, or None."""

    kind: ClassVar[str] = "Pod"
    head: ClassVar[bytes] = head_of("Pod")
    pod: Pod
    template: PodTemplate
    status: bytes | None = None

    @property
    @override
    def subject(self) -> Pod:
        """The parts of the pod that scheduling reads."""
        return self.pod

    @property
    @override
    def name(self) -> str:
        """`metadata.name`."""
        return self.pod.name

    @property
    @override
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return self.pod.namespace

    @property
    @override
    def uid(self) -> str:
        """`metadata.uid`, or "" before one is assigned."""
        return self.pod.uid

    @property
    def is_in_group(self) -> bool:
        """Whether the pod's label or spec makes it a member of a pod group."""
        return self.template.group is not None or bool(self.pod.labels.get(POD_GROUP_LABEL))

    @property
    @override
    def warnings(self) -> FieldWarnings:
        """Warnings about ignored fields, apart from those that depend on the cluster."""
        known = self.template.warnings
        return known if self.status is None else known + warnings_in_part("status", self.status)

    @override
    def render(self) -> bytes:
        """Render the whole pod as canonical JSON, without `resourceVersion`."""
        pod = self.pod
        members = self.metadata
        if pod.required_node_name and not pod.node_name:
            members = with_required_node(members, pod.required_node_name)
        node_name = f'"nodeName":"{pod.node_name}",' if pod.node_name else ""
        uid, created = pod.uid, self.created
        if uid and created:  # true of every stored pod
            identity = f',"uid":"{uid}","creationTimestamp":"{created}"'
        else:
            identity = self._identity(uid)
        parts = (
            self.head,
            b'"name":"',
            pod.name.encode(),
            b'"',
            members,
            f'{identity}}},"spec":{{{node_name}'.encode(),
            self.template.spec_json[1:],
            b',"status":' + self.status if self.status is not None else b"",
            b"," + self.rest if self.rest else b"",
            b"}",
        )
        return b"".join(parts)

    def with_identity(self, uid: str, created: str) -> "PodManifest":
        """Return a copy of the pod with a uid and a creation time (RFC 3339, UTC)."""
        return replace(self, pod=replace(self.pod, uid=uid, created=created), created=created)

    def placed(self, node_name: str) -> "PodManifest":
        """Return a copy of the pod, bound to a node."""
        return replace(self, pod=replace(self.pod, node_name=node_name, required_node_name=None))

    def without_node(self) -> "PodManifest":
        """Return a copy of the pod as if it were pending: without a node or a status."""
        pod = replace(
            self.pod, node_name=None, nominated_node_name=None, unready=False, starting=False
        )
        return replace(self, pod=pod, status=None)

    def to_place(self) -> "PodManifest":
        """Return an unbound copy of the pod that may only be placed on its previous node."""
        pod = self.pod
        if pod.node_name is None:
            return self
        return replace(self, pod=replace(pod, node_name=None, required_node_name=pod.node_name))

    @override
    def named(self, name: str) -> "PodManifest":
        """Return a copy of the pod with another name, as a replica of a template."""
        return replace(self, pod=replace(self.pod, name=name))

    def with_condition(self, condition: PodCondition) -> "PodManifest":
        """Return a copy of the pod with a condition set in its status."""
        return self.with_status(with_condition(self.status_fields(), condition))

    def with_deletion(self, at: str) -> "PodManifest":
        """Return a copy of the pod that is terminating since `at` (RFC 3339, UTC)."""
        members = following(fields_of(self.metadata) | {"deletionTimestamp": at})
        return replace(self, pod=replace(self.pod, terminating=True), metadata=members)

    def with_nomination(self, node_name: str | None) -> "PodManifest":
        """Return a copy of the pod with this nominated node, or with none."""
        if self.pod.nominated_node_name == node_name:
            return self
        fields = {k: value for k, value in self.status_fields().items() if k != _NOMINATED}
        return self.with_status(fields | {_NOMINATED: node_name} if node_name else fields)

    def with_device_claims(self, made: Mapping[str, str]) -> "PodManifest":
        """Return a copy of the pod whose status names the claims created for it."""
        fields = self.status_fields()
        known = [
            entry
            for entry in map(entries_of, items_of(fields.get(CLAIM_STATUSES)))
            if entry.get("name") not in made
        ]
        new = [{"name": own, "resourceClaimName": name} for own, name in made.items()]
        return self.with_status(fields | {CLAIM_STATUSES: [*known, *new]})

    def status_fields(self) -> Json:
        """Return the decoded status, or an empty object."""
        return _fields_of_status(self.status)

    def created_now(self, templates: TemplateCache) -> "PodManifest":
        """Return a copy of the pod as created, with label keys merged into its terms.

        A pod that already has a uid was created elsewhere, by an API server.

        Raises `InvalidManifest` like `merge_label_keys`.
        """
        if not self.template.label_keys:
            return self
        return self._with_template(
            templates.created(self.template, self.pod.labels, elsewhere=bool(self.uid)), templates
        )

    def keeping_terms(self, stored: "PodManifest", templates: TemplateCache) -> "PodManifest":
        """Return this update with the terms that the stored pod got when it was created.

        Raises `InvalidManifest` like `merge_label_keys`.
        """
        if not self.template.label_keys:
            return self
        return self._with_template(
            templates.updated(self.template, stored.template, self.pod.labels), templates
        )

    def updating(self, stored: "PodManifest", *, patched: bool = False) -> "PodManifest":
        """Return this update with the parts of the stored pod that updates cannot remove.

        These are its node, `deletionTimestamp`, creation time, and the conditions that Moorage
        wrote; and, unless the update states them, its uid, its nominated node, the claims created
        for it, and its end through the deletion of its node. What was `patched` states its
        nominated node and claims by leaving them out, too: the patch removed them.
        """
        pod, old = self.pod, stored.pod
        updated = self.with_identity(pod.uid or old.uid, old.created or pod.created)
        if old.node_name and not pod.node_name:
            updated = updated.placed(old.node_name)
        if old.terminating and not pod.terminating:
            marked = fields_of(stored.metadata)["deletionTimestamp"]
            updated = updated.with_deletion(cast("str", marked))
        kept = _kept_status(updated.status, stored.status, patched=patched)
        updated = updated if kept is None else updated.with_read_status(kept)
        if old.nominated_node_name and updated.pod.node_name is None and not patched:
            updated = updated.keeping_nomination(old.nominated_node_name)
        if stored.has_ended_with_its_node and not updated.phase:
            updated = updated.with_status(updated.status_fields() | {"phase": "Failed"})
        return updated

    @property
    def phase(self) -> str:
        """The phase in the status, or ""."""
        return cast("str", self.status_fields().get("phase") or "")

    @property
    def has_ended_with_its_node(self) -> bool:
        """Whether Moorage marked the pod as Failed because its node was deleted."""
        return self.pod.finished and is_ended_with_its_node(self.status_fields())

    def reopened(self) -> "PodManifest":
        """Return a copy of the pod that no longer counts as ended with its node."""
        status = without_condition(self.status_fields(), DISRUPTION_TARGET)
        return self.with_status({n: value for n, value in status.items() if n != "phase"})

    def keeping_nomination(self, node_name: str) -> "PodManifest":
        """Return this update with the previous nominated node, unless it states one."""
        return self if _NOMINATED in self.status_fields() else self.with_nomination(node_name)

    def same_pod(self, other: "PodManifest") -> bool:
        """Return whether labels, annotated rules, and defaulted specs, except nodes, are equal."""
        if self.pod.labels != other.pod.labels:
            return False
        if annotation_of(self.template.spec) != annotation_of(other.template.spec):
            return False
        mine, theirs = self.template.spec_json, other.template.spec_json
        return mine == theirs or bool(_decode_object(mine) == _decode_object(theirs))

    def states(self, field: str) -> bool:
        """Return whether the spec has this field with a value other than null."""
        members = self.template.spec_json
        return field.encode() in members and _decode_object(members).get(field) is not None

    def with_fields(self, fields: Json, templates: TemplateCache) -> "PodManifest":
        """Return a copy of the pod with these fields set in its spec."""
        members = self.template.spec_json
        if any(b'"%b"' % name.encode() in members for name in fields):
            spec_json = encode(_decode_object(members) | fields)
        else:
            spec_json = b"%b,%b" % (encode(fields)[:-1], members[1:])
        template = templates.find(spec_json) or templates.of(_decode_object(spec_json))
        return self._with_template(template, templates)

    def with_spec(self, spec: Json, templates: TemplateCache) -> "PodManifest":
        """Return a copy of the pod with another decoded, valid spec, on the same node."""
        return self._with_template(templates.of(spec), templates)

    def amended(self, amendment: Amendment, templates: TemplateCache) -> "PodManifest":
        """Return a copy of the pod with its spec amended.

        Raises `InvalidManifest` like `TemplateCache.amended`.
        """
        return self._with_template(templates.amended(self.template, amendment), templates)

    def _with_template(self, template: PodTemplate, templates: TemplateCache) -> "PodManifest":
        if template is self.template:
            return self
        annotation = annotation_of(self.template.spec)
        if annotation is not None:
            template = templates.annotated(template, annotation)
        return replace(
            self,
            pod=replace(self.pod, spec=template.spec, claims=template.claims),
            template=template,
        )

    def reporting(self, patch: bytes, limits: Limits) -> "PodManifest":
        """Apply a merge patch (RFC 7396) to the pod's status, and return the patched pod.

        Raises `InvalidManifest` if the patched status is not valid.
        """
        report = _known_report if _are_small(patch, self.status) else _report
        return self.with_read_status(report(self.status, patch, limits))

    def with_status(self, status: Json) -> "PodManifest":
        """Return a copy of the pod with another decoded, valid status."""
        return self.with_read_status(_read_status(status))

    def with_read_status(self, status: "ReadStatus") -> "PodManifest":
        """Return a copy of the pod with another status."""
        pod = replace(
            self.pod,
            finished=status.finished,
            resize=status.resize,
            started=status.started,
            nominated_node_name=status.nominated_node_name,
            unready=status.unready,
            starting=status.starting,
            preempted=status.preempted,
            device_claims=status.device_claims,
        )
        return replace(self, pod=pod, status=status.encoded)

    def has_other_status(self, other: "PodManifest") -> bool:
        """Return whether the two statuses differ, ignoring the order of fields."""
        return _differ(self.status, other.status)


class ReadStatus(msgspec.Struct, frozen=True):
    """A status in encoded form, and the parts that scheduling reads."""

    encoded: bytes
    finished: bool
    resize: PodResize | None
    started: str
    nominated_node_name: str | None
    unready: bool
    starting: bool
    preempted: bool
    device_claims: tuple[tuple[str, str | None], ...]


def _read_status(status: Json) -> ReadStatus:
    return ReadStatus(
        encoded=encode(status),
        finished=is_finished(status),
        resize=resize_of(status),
        started=started_at(status),
        nominated_node_name=nominated_node(status),
        unready=is_unready(status),
        starting=is_starting(status),
        preempted=is_preempted(status),
        device_claims=device_claims_of(status),
    )


def _fields_of_status(status: bytes | None) -> Json:
    return entries_of(msgspec.json.decode(status)) if status is not None else {}


# Many pods report the same status over the same stored one, so results for small statuses are
# cached.


def _kept_status(status: bytes | None, old: bytes | None, *, patched: bool) -> ReadStatus | None:
    """Return a client's status with Moorage's own fields of the old one, or None if unchanged."""
    if old is None:
        return None
    return (_known_kept if _are_small(status, old) else _keep)(status, old, patched)


def _report(status: bytes | None, patch: bytes, limits: Limits) -> ReadStatus:
    patched = merge_patch(_fields_of_status(status), msgspec.json.decode(patch))
    problems = Problems(limits)
    POD_RULES.envelope({"metadata": {"name": "any"}, "status": patched}, "", problems)
    problems.raise_any()
    return _read_status(entries_of(patched))


def _keep(status: bytes | None, old: bytes | None, patched: bool) -> ReadStatus | None:  # noqa: FBT001
    fields = _fields_of_status(status)
    kept = preserve_server_fields(fields, _fields_of_status(old), patched=patched)
    return None if kept is fields else _read_status(kept)


def _differ(status: bytes | None, other: bytes | None) -> bool:
    if status == other:
        return False
    return (_known_difference if _are_small(status, other) else _find_difference)(status, other)


def _find_difference(status: bytes | None, other: bytes | None) -> bool:
    return _fields_of_status(status) != _fields_of_status(other)


def _are_small(status: bytes | None, other: bytes | None) -> bool:
    return len(status or b"") + len(other or b"") <= _STATUS_BYTES_MAX


_known_kept = lru_cache(maxsize=1_024)(_keep)
_known_difference = lru_cache(maxsize=1_024)(_find_difference)
_known_report = lru_cache(maxsize=1_024)(_report)


def parse_pod(
    raw: bytes | object,
    templates: TemplateCache,
    *,
    name: str | None = None,
    namespace: str | None = None,
    to_place: bool = False,
) -> PodManifest:
    """Parse a pod's manifest from an untrusted source.

    Args:
        raw: JSON, or decoded JSON.
        templates: the cache in which the spec is looked up or added.
        name: the required name, also used if the pod has none.
        namespace: the required namespace; None accepts any, and defaults to `default`.
        to_place: whether `nodeName` is a requested node (`Pod.required_node_name`), not the actual
            one.

    Raises `MalformedJSON`, or `InvalidManifest` with all errors.
    """
    plain = cut_any(raw) if isinstance(raw, bytes) else None
    manifest = parse_plain_pod(plain, templates) if plain is not None else None
    if manifest is None or (name or manifest.name, namespace or manifest.namespace) != (
        manifest.name,
        manifest.namespace,
    ):
        manifest = _read_any(raw, templates, name, namespace)
    return manifest.to_place() if to_place else manifest


def load_pod(body: bytes, templates: TemplateCache) -> PodManifest:
    """Load a pod from a body that Moorage rendered, which is valid, defaulted, and merged."""
    return _load_known(body, templates) or _load_any(body, templates)


def _load_known(body: bytes, templates: TemplateCache) -> PodManifest | None:
    """Load a rendered pod whose template is cached, or return None."""
    plain = cut(body)
    metadata = loaded_metadata(plain.metadata, DEFAULT_NAMESPACE) if plain is not None else None
    if plain is None or metadata is None or plain.first != SPEC:
        return None
    spec, separator, status = plain.body.rpartition(BEFORE_STATUS)
    known = _find_template(spec + b"}" if separator else status, templates)
    if known is None:
        return None
    try:
        return _manifest(metadata, *known, status=status if separator else None)
    except msgspec.DecodeError:  # other members follow the status
        return None


def _load_any(body: bytes, templates: TemplateCache) -> PodManifest:
    members = _decode_members(body)
    metadata = read_metadata(_decode_object(members.pop("metadata")), DEFAULT_NAMESPACE)
    cut = _cut_node_name(bytes(members.pop("spec")))
    assert cut is not None, "a spec that was rendered here is compact and its nodeName a name"
    sent, node_name = cut
    template = templates.find(sent) or templates.add(sent, _decode_object(sent), stored=True)
    if ANNOTATION in metadata.annotations:
        template = templates.annotated(template, metadata.annotations[ANNOTATION], checked=True)
    status = members.pop("status", None)
    rest = {n: v for n, v in members.items() if n not in ("apiVersion", "kind")}
    return _manifest(
        metadata,
        template,
        node_name,
        status=bytes(status) if status is not None else None,
        rest=members_of(rest),
    )


def parse_plain_pod(plain: Plain, templates: TemplateCache) -> PodManifest | None:
    """Return a pod with a cached template and plain metadata, or None."""
    if plain.kind not in _OWN_KIND or plain.first != SPEC:
        return None
    spec, separator, status = plain.body.rpartition(BEFORE_STATUS)
    known = _find_template(spec + b"}" if separator else status, templates)
    if known is None or known[0].exceeds or (known[1] and known[0].spec.scheduling_gates):
        return None
    metadata = plain_metadata(plain.metadata, DEFAULT_NAMESPACE)
    if metadata is None or (known[0].group is not None and POD_GROUP_LABEL in metadata.labels):
        return None
    if separator and not _is_known_status(status, templates.limits):
        return None
    return _manifest(metadata, *known, status=status if separator else None)


def _is_known_status(raw: bytes, limits: Limits) -> bool:
    """Return whether these bytes are a small, valid status, which many pods share."""
    return len(raw) <= _STATUS_BYTES_MAX and _is_valid_status(raw, limits)


@lru_cache(maxsize=1_024)
def _is_valid_status(raw: bytes, limits: Limits) -> bool:
    problems = Problems(limits)
    try:
        status = decode_strict(raw)
    except (MalformedJSON, InvalidManifest):
        return False
    POD_RULES.envelope({"metadata": {"name": "any"}, "status": status}, "", problems)
    return not problems.errors and encode(status) == raw


def _find_template(spec: bytes, templates: TemplateCache) -> tuple[PodTemplate, str | None] | None:
    """Return a spec's cached template and `nodeName`, or None if either is not plain."""
    begin = spec.find(_NODE_NAME)
    if begin < 0:
        template = templates.find(spec)
        return (template, None) if template is not None else None
    end = spec.find(b'"', begin + len(_NODE_NAME))
    name = known_name(spec[begin + len(_NODE_NAME) : end])
    # Cut out the member and a comma: the rest must be a known spec, and the cut must lie between
    # two
    # of its top-level members.
    first, gap = begin == 1, begin - 1
    others = b"{" + spec[end + 2 :] if first else spec[:gap] + spec[end + 1 :]
    comma = spec[end + 1 : end + 2] if first else spec[gap:begin]
    if name is None or comma != b",":
        return None
    template = templates.find(others, gap=gap)
    return (template, name) if template is not None else None


def _cut_node_name(spec: bytes) -> tuple[bytes, str | None] | None:
    """Split a compact spec into its `nodeName` and the rest; fast if the name comes first.

    Return None if the spec is not compact or its `nodeName` is not a valid name.
    """
    if _NODE_NAME_KEY not in spec:
        return spec, None
    if spec.startswith(_NODE_NAME_FIRST) and spec.count(_NODE_NAME_KEY) == 1:
        first, _, rest = spec[len(_NODE_NAME_FIRST) :].partition(b'",')
        if rest and not dns_subdomain(first.decode()):
            return b"{" + rest, first.decode()
    fields = _decode_object(spec)
    if "nodeName" not in fields:  # ignore a nested field of that name
        return spec, None
    others, node_name = split_node_name(fields)
    if encode(fields) != spec or not isinstance(node_name, str) or dns_subdomain(node_name):
        return None
    return encode(others), node_name


def _read_any(
    raw: bytes | object, templates: TemplateCache, name: str | None, namespace: str | None
) -> PodManifest:
    draft = open_draft(POD_RULES, raw, templates.limits, name, namespace)
    fields = draft.fields
    others, node_name = split_node_name(entries_of(fields.get("spec")))
    sent = encode(others)
    template = None if node_name is not None else templates.find(sent)
    if template is None or template.exceeds:
        draft.check_spec()
    draft.problems.raise_any()
    metadata = draft.read_metadata()
    check_annotations(metadata.annotations, draft.problems)
    draft.problems.raise_any()
    template = template or templates.add(sent, others)
    if template.group is not None:
        refuse_other_group(metadata.labels, template.group)
    if ANNOTATION in metadata.annotations:
        template = templates.annotated(template, metadata.annotations[ANNOTATION])
    rest = draft.other_fields()
    status = rest.pop("status", _ABSENT)
    del rest["spec"]
    return _manifest(
        metadata,
        template,
        cast("str | None", node_name),
        status=None if status is _ABSENT else encode(status),
        rest=members_of(rest),
    )


def _manifest(
    metadata: Metadata,
    template: PodTemplate,
    node_name: str | None,
    *,
    status: bytes | None = None,
    rest: bytes = b"",
) -> PodManifest:
    reported = entries_of(msgspec.json.decode(status)) if status is not None else None
    pod = Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=template.spec,
        labels=metadata.labels,
        uid=metadata.uid,
        node_name=node_name,
        required_node_name=metadata.required_node_name if node_name is None else None,
        terminating=metadata.terminating,
        finished=is_finished(reported) if reported else False,
        resize=resize_of(reported) if reported else None,
        created=metadata.created,
        controller=metadata.controller,
        started=started_at(reported) if reported else "",
        nominated_node_name=nominated_node(reported) if reported else None,
        unready=is_unready(reported) if reported else False,
        starting=is_starting(reported) if reported else False,
        preempted=is_preempted(reported) if reported else False,
        claims=template.claims,
        device_claims=device_claims_of(reported) if reported else (),
    )
    return PodManifest(
        pod=pod,
        template=template,
        metadata=metadata.members,
        status=status,
        rest=rest,
        created=metadata.created,
        resource_version=metadata.resource_version,
    )
