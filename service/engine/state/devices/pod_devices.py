"""The device claims of a pod: existing claims, or templates that claims are created from."""

from typing import NamedTuple

from service.engine.state.devices.device_table import DeviceTable, NodeVerdicts
from service.engine.state.devices.search import WantedClaim
from service.engine.state.nodes.columns import Ints
from service.model.core.primitives import ObjectName
from service.model.devices.device import CONSUMERS_MAX, DeviceClaimSpec, ResourceClaim
from service.model.pods.pod import Pod

MISSING = 'could not find ResourceClaim "{}"'
NO_TEMPLATE = 'resourceclaimtemplate "{}" not found'
DELETED = 'resourceclaim "{}" is being deleted'
NOT_OWNED = "ResourceClaim {} was not created for pod {} (pod is not owner)"
IN_USE = "resourceclaim in use"
AWAITED = 'resourceclaim "{}" has binding conditions that are not met, and are not awaited'
NO_CLASS = "request {}: device class {} does not exist"


class DeviceUse(NamedTuple):
    """A claim that a pod uses."""

    pod_claim: str
    """The name of the claim in the pod's spec."""
    claim: str | None
    """The name of the claim, or None if it is yet to be created from `template`."""
    template: str | None = None
    """The name of the template if the claim is created for the pod, or None."""


def uses_of(pod: Pod) -> tuple[DeviceUse, ...]:
    """Return the claims that a pod uses, without duplicates, in the order of its spec.

    Templates that need no claim according to the pod's status are omitted.
    """
    made = dict(pod.device_claims)
    uses: dict[str | DeviceUse, DeviceUse] = {}
    for claim in pod.spec.resource_claims:
        name, template = claim.resource_claim_name, claim.resource_claim_template_name
        if name is None and claim.name in made:
            name = made[claim.name]
            if name is None:
                continue
        use = DeviceUse(claim.name, name, template)
        uses.setdefault(use if name is None else name, use)
    return tuple(uses.values())


class PodDevices:
    """The device claims of a class's pods, in the form that scheduling reads."""

    __slots__ = ("namespace", "pod_name", "pod_uid", "table", "uses")

    def __init__(self, pod: Pod, table: DeviceTable) -> None:
        self.table = table
        self.namespace = pod.namespace
        self.uses = uses_of(pod)
        self.pod_name = f"{pod.namespace}/{pod.name}"
        self.pod_uid = pod.uid
        """The name and uid apply to all pods of the class if a claim was created for the pod."""

    def key_of(self, name: str) -> ObjectName:
        """Return the key of a claim in the pods' namespace."""
        return self.namespace, name

    def rejection(self) -> str | None:
        """Return the reason for rejecting the pods on every node, or None."""
        for use in self.uses:
            reason = self._unusable(use)
            if reason is not None:
                return reason
        for use in self.uses:
            claim = self._claim(use)
            if claim is not None and claim.is_allocated:
                if claim.consumers >= CONSUMERS_MAX:
                    return IN_USE
                if claim.is_awaited and self.table.version.awaits_devices:
                    return AWAITED.format(claim.name)
                continue
            reason = self._without_class(self._spec(use))
            if reason is not None:
                return reason
        return None

    def allocated_claims(self) -> list[ResourceClaim]:
        """Return the claims with allocated devices."""
        claims = [self._claim(use) for use in self.uses]
        return [claim for claim in claims if claim is not None and claim.is_allocated]

    def unallocated_uses(self) -> list[DeviceUse]:
        """Return the uses of claims without allocated devices; the pods must not be rejected."""
        return [use for use in self.uses if not self._is_allocated(use)]

    def wanted(self) -> tuple[WantedClaim, ...]:
        """Return the requests of the unallocated claims."""
        return tuple(
            [
                WantedClaim(f"{self.namespace}/{use.claim or use.template}", self._spec(use))
                for use in self.unallocated_uses()
            ]
        )

    def preference(self, wanted: tuple[WantedClaim, ...]) -> Ints | None:
        """Return how preferred the alternatives are that each node satisfies, shape (nodes,).

        Values for nodes where the claims cannot be allocated have no meaning. Returns None if no
        claim has alternatives, or all claims have devices.
        """
        if not wanted:
            return None
        allocated = sum(claim.preference for claim in self.allocated_claims())
        if not allocated and not any(claim.spec.has_alternatives for claim in wanted):
            return None
        return self.verdicts(wanted).preference + allocated

    def verdicts(self, wanted: tuple[WantedClaim, ...]) -> NodeVerdicts:
        """Return the verdicts on where these claims can be allocated."""
        return self.table.verdicts(wanted, self)

    def _claim(self, use: DeviceUse) -> ResourceClaim | None:
        return None if use.claim is None else self.table.claims.get(self.key_of(use.claim))

    def _is_allocated(self, use: DeviceUse) -> bool:
        claim = self._claim(use)
        return claim is not None and claim.is_allocated

    def _spec(self, use: DeviceUse) -> DeviceClaimSpec:
        claim = self._claim(use)
        if claim is not None:
            return claim.spec
        assert use.template is not None
        return self.table.templates[self.key_of(use.template)].spec

    def _unusable(self, use: DeviceUse) -> str | None:
        """Return why a claim, or its template, cannot be used, or None."""
        if use.claim is None:
            known = use.template is not None and self.key_of(use.template) in self.table.templates
            return None if known else NO_TEMPLATE.format(use.template)
        claim = self._claim(use)
        if claim is None:
            return MISSING.format("/".join(self.key_of(use.claim)))
        if claim.terminating:
            return DELETED.format(claim.name)
        if use.template is not None and claim.controller_uid != self.pod_uid:
            return NOT_OWNED.format("/".join(claim.key), self.pod_name)
        return None

    def _without_class(self, spec: DeviceClaimSpec) -> str | None:
        for alternatives in spec.requests:
            for alternative in alternatives:
                if alternative.class_name not in self.table.classes:
                    return NO_CLASS.format(alternative.full_name, alternative.class_name)
        return None
