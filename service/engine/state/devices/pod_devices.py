"""What a pod asks of devices: claims by their names, or templates that claims are made from."""

from typing import NamedTuple

from service.engine.state.devices.device_table import DeviceTable, NodeVerdicts
from service.engine.state.devices.search import WantedClaim
from service.model.objects.devices import CONSUMERS_MAX, DeviceClaimSpec, ResourceClaim
from service.model.objects.pods_and_nodes import ObjectName, Pod

MISSING = 'could not find ResourceClaim "{}"'
NO_TEMPLATE = 'resourceclaimtemplate "{}" not found'
DELETED = 'resourceclaim "{}" is being deleted'
NOT_OWNED = "ResourceClaim {} was not created for pod {} (pod is not owner)"
IN_USE = "resourceclaim in use"
NO_CLASS = "request {}: device class {} does not exist"


class DeviceUse(NamedTuple):
    """A claim that a pod uses."""

    pod_claim: str
    """The name that the pod's spec has for it."""
    claim: str | None
    """Name of the claim; None: it is still to be made from `template`."""
    template: str | None = None
    """Name of the template that it is made from, if it is made for the pod."""


def uses_of(pod: Pod) -> tuple[DeviceUse, ...]:
    """Return the claims that a pod uses, each once, in the order of its spec.

    Where the pod's status says that no claim was needed for a template, there is none.
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
    """The devices of the pods of one class, as far as scheduling reads them."""

    __slots__ = ("namespace", "pod_name", "pod_uid", "table", "uses")

    def __init__(self, pod: Pod, table: DeviceTable) -> None:
        self.table = table
        self.namespace = pod.namespace
        self.uses = uses_of(pod)
        self.pod_name = f"{pod.namespace}/{pod.name}"
        self.pod_uid = pod.uid
        """Name and uid are those of all pods of the class, if a claim was made for the pod."""

    def key_of(self, name: str) -> ObjectName:
        """Return the key of a claim in the pods' namespace."""
        return self.namespace, name

    def rejection(self) -> str | None:
        """Why the pods can be on no node, whatever devices there are."""
        for use in self.uses:
            reason = self._unusable(use)
            if reason is not None:
                return reason
        for use in self.uses:
            claim = self._claim(use)
            if claim is not None and claim.is_allocated:
                if claim.consumers >= CONSUMERS_MAX:
                    return IN_USE
                continue
            reason = self._without_class(self._spec(use))
            if reason is not None:
                return reason
        return None

    def allocated(self) -> list[ResourceClaim]:
        """Return the claims that have their devices."""
        claims = [self._claim(use) for use in self.uses]
        return [claim for claim in claims if claim is not None and claim.is_allocated]

    def unallocated_uses(self) -> list[DeviceUse]:
        """Return the uses of claims that have no devices yet; the pods are not rejected."""
        return [use for use in self.uses if not self._is_allocated(use)]

    def wanted(self) -> tuple[WantedClaim, ...]:
        """Return what these claims ask for."""
        return tuple(
            [
                WantedClaim(f"{self.namespace}/{use.claim or use.template}", self._spec(use))
                for use in self.unallocated_uses()
            ]
        )

    def verdicts(self, wanted: tuple[WantedClaim, ...]) -> NodeVerdicts:
        """Return on which nodes these claims of theirs can be given what they ask for."""
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
        """Why a claim, or the template of one, can't be used."""
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
