"""Templates: data that all pods with the same spec share, computed once.

A cache maps the bytes of a spec to its decoded, validated, and defaulted form, and this form to the
merged one for a new pod's labels. Pods of one Deployment or Job differ only in metadata, so nearly
every pod is a hit. Lookups use compact JSON, as sent by clients in Go and Rust and by Moorage's own
renderer; other JSON is first decoded and encoded compactly. Pods of one DaemonSet each name a node,
and pods of one StatefulSet name claims: their templates are derived from the first pod's template
(`service.model.pods.spec_families`).
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Protocol
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from service.model.core.field_warnings import FieldWarning, warnings_in_part
from service.model.core.quantity import INT64_MAX
from service.model.core.strict_json import encode
from service.model.core.validators import Limits, Problems, without_nulls
from service.model.nodes.shapes import NodeShapes
from service.model.pods.annotated_rules import AnnotatedSpec, check_merged, merge_annotated
from service.model.pods.connections import with_connections
from service.model.pods.declared_features import without_plain_mounts
from service.model.pods.defaults import Json, fill_defaults
from service.model.pods.label_keys import LabelKeys, label_keys, merge_label_keys
from service.model.pods.pod import PodSpec
from service.model.pods.pod_limits import exceeds
from service.model.pods.pod_rules import SPEC
from service.model.pods.requests import pod_requests
from service.model.pods.rule_warnings import warnings_of_rules
from service.model.pods.scheduling_groups import GroupMembership, membership_of
from service.model.pods.spec_families import (
    ByteTemplate,
    claim_names,
    cut_claim_names,
    cut_node_name,
    known_name,
    names_node,
    naming,
    split_claims,
)

CACHE_BYTES_MAX = 64 * 1024**2
OVERHEAD_BYTES = 2 * 1024
"""The approximate fixed size of a template, in bytes, in addition to its JSON."""

DECODED_FACTOR = 6
"""The approximate ratio of a template's decoded size to the length of its JSON."""

FAMILIES_SHARE = 8
"""The divisor for the share of a cache's bytes that is reserved for families of specs."""


Labels = Mapping[str, str]

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Amendment(Protocol, Hashable):
    """A change that admission makes to the specs of new pods; equal ones share templates."""

    def amend(self, spec: Json) -> None:
        """Apply the change to a valid spec, in place; must be idempotent."""


class PodTemplate(msgspec.Struct, frozen=True):
    """Data shared by all pods with the same spec.

    `spec_json` is the whole spec as returned to clients: as sent, with defaults and merges, but
    without `nodeName`. It is never an empty object, as a pod has at least one container.
    `label_keys` are the labels that determine the requirements merged at a pod's creation.
    `warnings` are about ignored fields and rules without effect. `claims` are the names of the
    claims of its volumes, in order; `spec` does not contain them. `group` is the group that the
    spec names, or None. `exceeds` is whether the spec exceeds a limit for new pods, as stored pods
    may after a limit was lowered.
    """

    spec: PodSpec
    spec_json: bytes
    label_keys: LabelKeys = ()
    warnings: tuple[FieldWarning, ...] = ()
    claims: tuple[str, ...] = ()
    group: GroupMembership | None = None
    exceeds: bool = False

    def decoded(self) -> Json:
        """Return the whole spec, decoded."""
        return msgspec.json.decode(self.spec_json, type=Json)


class _Entry:
    """A template, and its merged forms for new pods, keyed by the values of its label keys."""

    __slots__ = ("_gaps", "created", "size", "template")

    def __init__(self, template: PodTemplate) -> None:
        self.template = template
        self.size = 0
        self._gaps: frozenset[int] | None = None
        self.created: dict[tuple[object, ...], PodTemplate] = {}

    def has_gap(self, sent: bytes, at: int) -> bool:
        """Return whether another member could be inserted at this position of the spec's bytes."""
        if self._gaps is None:
            self._gaps = _gaps(sent)
        return at in self._gaps


class _Family:
    """The common part of specs that differ only in the names of their node or claims."""

    __slots__ = ("_gaps", "_group", "_spec", "_spec_json", "_warnings", "claims", "size")

    is_of_daemons: ClassVar[bool]
    """Whether each member has its own spec, because the spec contains the node's name."""

    def __init__(self, template: PodTemplate, spec_json: ByteTemplate) -> None:
        self._spec = template.spec
        self._warnings = template.warnings
        self._group = template.group
        self.claims = template.claims
        self._spec_json = spec_json
        self._gaps: frozenset[int] | None = None
        self.size = 0

    def has_gap(self, sent: ByteTemplate, at: int) -> bool:
        """Return whether another member could be inserted at this position of the spec's bytes."""
        if self._gaps is None:
            self._gaps = _gaps(sent.filled((b"",) * len(sent.names)))
        return sent.before_cut(at) in self._gaps

    def spec_json(self, names: tuple[bytes, ...]) -> bytes:
        """Return the JSON of the spec of the member with these names."""
        return self._spec_json.filled(names)

    def member(self, names: tuple[str, ...], spec_json: bytes) -> PodTemplate:
        """Return the template of the member with these names."""
        raise NotImplementedError

    def template(self, spec: PodSpec, spec_json: bytes, claims: tuple[str, ...]) -> PodTemplate:
        """Return the template of a member with this spec and these claims."""
        return PodTemplate(
            spec, spec_json, warnings=self._warnings, claims=claims, group=self._group
        )


class _DaemonSetFamily(_Family):
    """A family whose members name a node in their node affinity, so each has its own spec."""

    __slots__ = ()
    is_of_daemons: ClassVar[bool] = True

    @override
    def member(self, names: tuple[str, ...], spec_json: bytes) -> PodTemplate:
        return self.template(naming(self._spec, names[0]), spec_json, self.claims)


class _StatefulSetFamily(_Family):
    """A family whose members name claims, which are not part of the spec, so all share one spec."""

    __slots__ = ()
    is_of_daemons: ClassVar[bool] = False

    @override
    def member(self, names: tuple[str, ...], spec_json: bytes) -> PodTemplate:
        return self.template(self._spec, spec_json, claim_names(self._spec_json, names))


class SpecFamilies:
    """A size-bounded LRU cache of spec families, keyed by the spec bytes around the per-pod names.

    Members are held by weak references while their specs are in use, and do not count toward the
    bound.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: OrderedDict[tuple[bytes, ...], _Family] = OrderedDict()
        self._members: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
        """Specs instead of templates, because the engine keeps a spec as long as it has a pod of
        its class."""

    @property
    def size_in_bytes(self) -> int:
        """The total size, in bytes, of all families."""
        return self._bytes

    @property
    def sizes(self) -> list[int]:
        """The size of each family in bytes, least recently used first."""
        return [family.size for family in self._known.values()]

    @property
    def members(self) -> int:
        """The number of family members whose own specs are in use."""
        return len(self._members)

    def find(self, sent: bytes, gap: int) -> PodTemplate | None:
        """Return the template for a spec of a known family with valid names, or None."""
        return self._find(cut_node_name(sent), gap) or self._find(cut_claim_names(sent), gap)

    def _find(self, cut: ByteTemplate | None, gap: int) -> PodTemplate | None:
        family = self._known.get(cut.parts) if cut is not None else None
        if cut is None or family is None or (gap and not family.has_gap(cut, gap)):
            return None
        self._known.move_to_end(cut.parts)
        spec_json = family.spec_json(cut.names)
        spec = self._members.get(spec_json)
        if spec is not None:
            return family.template(spec, spec_json, family.claims)
        names = _known_names(cut)
        if names is None:
            return None
        member = family.member(names, spec_json)
        if family.is_of_daemons:
            self._members[spec_json] = member.spec
        return member

    def add(self, sent: bytes, template: PodTemplate) -> None:
        """Cache the family of a spec, if it belongs to one."""
        if template.label_keys:
            return
        if names_node(template.spec):
            cut, spec_json = cut_node_name(sent), cut_node_name(template.spec_json)
            self._add(sent, template, cut, spec_json and _DaemonSetFamily(template, spec_json))
        elif template.claims:
            cut, spec_json = cut_claim_names(sent), cut_claim_names(template.spec_json)
            self._add(sent, template, cut, spec_json and _StatefulSetFamily(template, spec_json))

    def _add(
        self, sent: bytes, template: PodTemplate, cut: ByteTemplate | None, family: _Family | None
    ) -> None:
        if cut is None or family is None or cut.parts in self._known:
            return
        if _known_names(cut) is None or not _is_family(family, cut):
            return
        if family.is_of_daemons:
            self._members.setdefault(template.spec_json, template.spec)
        self._known[cut.parts] = family
        family.size = _size(sent, template)
        self._bytes = _evict(self._known, self._bytes + family.size, self._bytes_max)


def _known_names(cut: ByteTemplate) -> tuple[str, ...] | None:
    """Return the names as strings, or None if any of them is invalid."""
    names = [known_name(name) for name in cut.names]
    valid = tuple(name for name in names if name is not None)
    return valid if len(valid) == len(names) else None


def _is_family(family: _Family, sent: ByteTemplate) -> bool:
    """Return whether replacing the names in a spec gives the same template as parsing the result.

    It does not if the bytes that look like names are something else, such as part of a preference,
    or if other data depends on them. All names are treated alike, so one trial is enough.
    """
    names = tuple(b"%b%d" % (name, number) for number, name in enumerate(sent.names))
    spec = msgspec.json.decode(sent.filled(names), type=Json)
    fill_defaults(spec)
    member = family.member(tuple(name.decode() for name in names), family.spec_json(names))
    return build_template(spec, encode(spec)) == member


class TemplateCache:
    """An LRU cache of templates by spec, bounded in bytes."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.node_shapes = NodeShapes()
        families_bytes_max = bytes_max // FAMILIES_SHARE
        self.families = SpecFamilies(families_bytes_max)
        """The families of specs that differ only in names."""
        self._bytes_max = bytes_max - families_bytes_max
        self._bytes = 0
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def find(self, sent: bytes, *, gap: int = 0) -> PodTemplate | None:
        """Return the cached template for a spec as sent, without `nodeName`, or None.

        `gap` is the position at which `nodeName` was cut out, or 0 if it came first or was absent.
        """
        entry = self._entries.get(sent)
        if entry is None:
            return self.families.find(sent, gap)
        if gap and not entry.has_gap(sent, gap):
            return None
        self._entries.move_to_end(sent)
        return entry.template

    def add(self, sent: bytes, spec: Json, *, stored: bool = False) -> PodTemplate:
        """Build and cache the template for a valid spec, which is modified in place.

        A `stored` spec may exceed the limits for new pods.

        Raises `InvalidManifest` if the pod's requests exceed 64 bits.
        """
        fill_defaults(spec)
        spec_json = encode(spec)
        template = self.find(spec_json) or build_template(spec, spec_json)
        if stored and exceeds(spec, self.limits):
            template = replace(template, exceeds=True)
        for encoded in dict.fromkeys((sent, spec_json)):
            self._remember(encoded, template)
            if not template.exceeds:
                self.families.add(encoded, template)
        return template

    def of(self, spec: Json) -> PodTemplate:
        """Return the template for a decoded, valid spec, which may be modified."""
        sent = encode(spec)
        return self.find(sent) or self.add(sent, spec)

    def created(
        self, template: PodTemplate, labels: Labels, *, elsewhere: bool = False
    ) -> PodTemplate:
        """Return the template for a new pod with these labels.

        Raises `InvalidManifest` like `merge_label_keys`.
        """
        if not template.label_keys:
            return template
        entry = self._entries.get(template.spec_json)
        variant = (elsewhere, *map(labels.get, template.label_keys))
        known = entry.created.get(variant) if entry is not None else None
        if known is not None:
            return known
        spec = template.decoded()
        merge_label_keys(spec, labels, elsewhere=elsewhere)
        merged = self.of(spec)
        if entry is not None:
            entry.created[variant] = merged
            self._grow(entry, OVERHEAD_BYTES)
        return merged

    def amended(self, template: PodTemplate, amendment: Amendment) -> PodTemplate:
        """Return a template with an amendment applied.

        Raises:
            InvalidManifest: the spec contradicts the amendment.
        """
        entry = self._entries.get(template.spec_json)
        known = entry.created.get((amendment,)) if entry is not None else None
        if known is not None:
            return known
        spec = template.decoded()
        amendment.amend(spec)
        amended = self.find(encode(spec))
        if amended is None:
            problems = Problems(self.limits)
            SPEC(spec, "spec", problems)
            problems.raise_any()
            amended = self.of(spec)
        if entry is not None:
            entry.created[amendment,] = amended
            self._grow(entry, OVERHEAD_BYTES)
        return amended

    def annotated(
        self, template: PodTemplate, annotation: str, *, checked: bool = False
    ) -> PodTemplate:
        """Return the template for a pod with rules in its annotation.

        Args:
            template: the template of the pod's spec without these rules.
            annotation: the annotation's value, which is valid on its own.
            checked: whether the two are known to be compatible.

        Raises:
            InvalidManifest: the two are incompatible.
        """
        entry = self._entries.get(template.spec_json)
        known = entry.created.get((annotation,)) if entry is not None else None
        if known is not None and (checked or not known.exceeds):
            return known
        if not checked:
            problems = Problems(self.limits)
            check_merged(template.decoded(), annotation, problems)
            problems.raise_any()
        together, _ = merge_annotated(template.decoded(), annotation)
        annotated = replace(
            _with_rules(template, annotation), exceeds=exceeds(together, self.limits)
        )
        if entry is not None:
            entry.created[annotation,] = annotated
            self._grow(entry, DECODED_FACTOR * (len(annotation) + len(template.spec_json)))
        return annotated

    def updated(self, template: PodTemplate, stored: PodTemplate, labels: Labels) -> PodTemplate:
        """Return the template for an update of a stored pod, whose terms stay merged as they were.

        Raises `InvalidManifest` like `merge_label_keys`.
        """
        if not template.label_keys or template.spec_json == stored.spec_json:
            return template
        spec = template.decoded()
        merge_label_keys(spec, labels, stored.decoded())
        return self.of(spec)

    def _remember(self, sent: bytes, template: PodTemplate) -> None:
        if sent in self._entries:
            return
        entry = self._entries[sent] = _Entry(template)
        self._grow(entry, _size(sent, template))

    def _grow(self, entry: _Entry, size: int) -> None:
        entry.size += size
        self._bytes = _evict(self._entries, self._bytes + size, self._bytes_max)


def _evict(
    known: OrderedDict[Any, _Entry] | OrderedDict[Any, _Family], size: int, size_max: int
) -> int:
    """Drop the least recently used entries until the size fits; return the new size."""
    while size > size_max and len(known) > 1:
        _, oldest = known.popitem(last=False)
        size -= oldest.size
    return size


def _size(sent: bytes, template: PodTemplate) -> int:
    """Return the approximate size of a template in bytes, including the spec as sent."""
    return len(sent) + DECODED_FACTOR * len(template.spec_json) + OVERHEAD_BYTES


def _gaps(sent: bytes) -> frozenset[int]:
    """Return where the members of a compact object end, or an empty set if keys have escapes."""
    ends, end = [], 0
    for name, value in _decode_members(sent).items():
        end += 1 + len(encode(name)) + 1 + len(bytes(value))
        ends.append(end)
    return frozenset(ends if end + 1 == len(sent) else ())


def build_template(spec: Json, spec_json: bytes) -> PodTemplate:
    """Decode a complete, valid spec with defaults applied, and build its template."""
    decoded, claims = split_claims(msgspec.convert(without_nulls(spec), PodSpec))
    decoded = without_plain_mounts(with_connections(decoded))
    _refuse_uncountable(decoded)
    # Daemons share everything but the node with the first pod of their family.
    rules = () if names_node(decoded) else warnings_of_rules(decoded)
    warnings = (*warnings_in_part("spec", spec_json), *rules)
    return PodTemplate(decoded, spec_json, label_keys(spec), warnings, claims, membership_of(spec))


def _with_rules(template: PodTemplate, annotation: str) -> PodTemplate:
    """Build the template of a spec with annotated rules; its JSON remains the spec's own."""
    spec, rules_from = merge_annotated(template.decoded(), annotation)
    fill_defaults(spec)
    decoded = build_template(spec, template.spec_json).spec
    fields = {name: getattr(decoded, name) for name in decoded.__struct_fields__}
    annotated = AnnotatedSpec(**fields, annotation=annotation, rules_from=rules_from)
    return replace(template, spec=annotated)


def _refuse_uncountable(spec: PodSpec) -> None:
    """Reject a spec whose total requests exceed 64 bits."""
    problems = Problems()
    for resource, amount in pod_requests(spec).amounts.items():
        if amount > INT64_MAX:
            problems.add("spec.containers", f"must request less {resource} in all (64-bit integer)")
    problems.raise_any()


def split_node_name(spec: Json) -> tuple[Json, object]:
    """Split a spec into the rest and its `nodeName`, or None if that is absent or empty."""
    rest = {name: value for name, value in spec.items() if name != "nodeName"}
    return rest, spec.get("nodeName") or None
