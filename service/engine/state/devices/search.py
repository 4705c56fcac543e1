"""Which devices the claims of a pod are given on one node: the first way in which all are met.

Claims, their requests and the devices of each are gone through in order, and whatever leads nowhere
is taken back, as in Kubernetes. Two things spare the search ways that can only fail again: the
devices of one request are taken in ascending order, and of devices that no request and no constraint
of the pod can tell apart only the first is tried.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from service.engine.state.devices.pools import DevicePool, OfferedDevice
from service.model.objects.cel_questions import OpenQuestions
from service.model.objects.devices import (
    RESULTS_MAX,
    AttributeValue,
    DeviceClaimSpec,
    DeviceClass,
    DeviceID,
    DeviceRequest,
    Grant,
    MatchAttribute,
)

NOT_ALL = "cannot allocate all claims"
TIMED_OUT = "timed out trying to allocate devices"
INVALID_POOLS = "invalid resource pools were encountered"
TOO_MANY = "claim {}: number of requested devices {} exceeds the claim limit of {}"
UPDATED = (
    "claim {}, request {}: asks for all devices, but a resource pool is currently being updated"
)
INVALID = "claim {}, request {}: asks for all devices, but a resource pool is currently invalid"
UNANSWERED = "selectors of the claims are being evaluated"
"""What is only said in decisions that are made again, as soon as the selectors were evaluated."""
UNDECIDED = "{}: selector #{}: CEL runtime error: {}"
"""Kubernetes names the pool or the device as well; without that, nodes have the reason in common."""
DEVICES_AT_ONCE_MAX = 256
"""How many devices all new claims of one pod may be given at once."""
TOO_MANY_AT_ONCE = "pod claims {} devices at once, of which at most {} are allocated"


class WantedClaim(NamedTuple):
    """A claim that is still to be given its devices."""

    name: str
    """Namespace and name of the claim, as messages name it."""
    spec: DeviceClaimSpec


class NoAllocation(Exception):  # noqa: N818 - it is an answer
    """There is no way on the node, or none was found in time; the message is the reason."""


class _Unanswered(Exception):  # noqa: N818 - it ends the search
    """It is not known yet whether a device is selected."""


class _Selector(NamedTuple):
    """An expression that has to be true of a device, and who says so, for messages."""

    text: str
    owner: str
    number: int


class _Need:
    """A request with all that follows from it on the node."""

    __slots__ = ("admin", "all_devices", "claim", "count", "request", "selectors")

    def __init__(
        self, claim: int, name: str, request: DeviceRequest, device_class: DeviceClass
    ) -> None:
        self.claim = claim
        self.request = request
        self.admin = request.admin_access
        self.count = request.count
        self.all_devices: tuple[OfferedDevice, ...] | None = None
        own = [_Selector(text, f"claim {name}", n) for n, text in enumerate(request.selectors)]
        of_class = [
            _Selector(text, f"class {device_class.name}", n)
            for n, text in enumerate(device_class.selectors)
        ]
        self.selectors = (*of_class, *own)


class _MatchConstraint:
    """A constraint of a claim, with the value that the devices taken so far have in common."""

    __slots__ = ("constraint", "devices", "value")

    def __init__(self, constraint: MatchAttribute) -> None:
        self.constraint = constraint
        self.value: AttributeValue | None = None
        self.devices = 0

    def allows(self, need: _Need, device: OfferedDevice) -> bool:
        """Return whether a device can be taken as well."""
        if not self.constraint.concerns(need.request):
            return True
        value = device.device.attributes.get(self.constraint.attribute)
        return value is not None and (not self.devices or value == self.value)

    def count(self, need: _Need, device: OfferedDevice, devices: int) -> None:
        """Note that a device is taken (1) or given back (-1)."""
        if self.constraint.concerns(need.request):
            self.value = device.device.attributes.get(self.constraint.attribute)
            self.devices += devices


class DeviceSearch:
    """One search, for one pod on one node."""

    def __init__(
        self,
        pools: Sequence[DevicePool],
        claims: Sequence[WantedClaim],
        classes: Mapping[str, DeviceClass],
        in_use: Collection[DeviceID],
        steps_max: int,
        questions: OpenQuestions,
    ) -> None:
        """`in_use` are the devices that other claims have; all classes of requests have to exist."""
        self._questions = questions
        self._pools = pools
        self._claims = claims
        self._in_use = in_use
        self._steps = steps_max
        self._offered = [device for pool in pools for device in pool.devices]
        self._needs = [
            [
                [_Need(number, each.name, request, classes[request.class_name]) for request in one]
                for one in each.spec.requests
            ]
            for number, each in enumerate(claims)
        ]
        self._constraints = [
            list(map(_MatchConstraint, claim.spec.constraints)) for claim in claims
        ]
        self._taken: dict[DeviceID, list[int]] = {}
        """By device: the claims for which it is taken in this search."""
        self._results: list[list[Grant]] = [[] for _ in claims]
        self._verdicts: dict[tuple[int, DeviceID], bool | str] = {}

    def run(self) -> list[tuple[Grant, ...]]:
        """Find what each claim is given, in the order of the claims.

        Raises:
            NoAllocation: nothing was found.
        """
        try:
            return self._run()
        except _Unanswered:
            self._ask_all()
            raise NoAllocation(UNANSWERED) from None

    def _run(self) -> list[tuple[Grant, ...]]:
        self._prepare()
        if not self._satisfy_from(0, 0):
            invalid = any(pool.is_invalid for pool in self._pools)
            raise NoAllocation(INVALID_POOLS if invalid else NOT_ALL)
        return [tuple(result) for result in self._results]

    def _prepare(self) -> None:
        total = 0
        for number, claim in enumerate(self._claims):
            least = 0
            for alternatives in self._needs[number]:
                for need in alternatives:
                    if need.request.takes_all:
                        self._determine(need)
                least += min(need.count for need in alternatives)
            if least > RESULTS_MAX:
                raise NoAllocation(TOO_MANY.format(claim.name, least, RESULTS_MAX))
            total += least
        if total > DEVICES_AT_ONCE_MAX:
            raise NoAllocation(TOO_MANY_AT_ONCE.format(total, DEVICES_AT_ONCE_MAX))

    def _determine(self, need: _Need) -> None:
        """Find out which devices are all that match."""
        name, request = self._claims[need.claim].name, need.request.name
        for pool in self._pools:
            if pool.is_incomplete:
                raise NoAllocation(UPDATED.format(name, request))
            if pool.is_invalid:
                raise NoAllocation(INVALID.format(name, request))
        need.all_devices = tuple([each for each in self._offered if self._selects(need, each)])
        need.count = len(need.all_devices)

    # The search

    def _satisfy_from(self, claim: int, request: int) -> bool:
        """Meet this request and all that follow."""
        while claim < len(self._claims) and request == len(self._needs[claim]):
            claim, request = claim + 1, 0
        if claim == len(self._claims):
            return True
        for need in self._needs[claim][request]:  # noqa: SIM110 - each has to end before the next
            if self._satisfy(need, request):
                return True
        return False

    def _satisfy(self, need: _Need, request: int) -> bool:
        """Meet a request, or what may take its place, and all that follow."""
        if len(self._results[need.claim]) + need.count > RESULTS_MAX:
            return False
        if need.all_devices is None:
            return self._pick_devices(need, request, need.count, 0)
        return bool(need.all_devices) and self._take_all(need, request, 0)

    def _take_all(self, need: _Need, request: int, index: int) -> bool:
        assert need.all_devices is not None
        if index == len(need.all_devices):
            return self._satisfy_from(need.claim, request + 1)
        self._step()
        device = need.all_devices[index]
        if not self._is_free(need, device):
            return False
        if not self._constraints_allow(need, device):
            return False
        self._take(need, device)
        if self._take_all(need, request, index + 1):
            return True
        self._give_back(need, device)
        return False

    def _pick_devices(self, need: _Need, request: int, missing: int, start: int) -> bool:
        """Take so many devices more for a request, none before `start`, and meet all that follow."""
        if not missing:
            return self._satisfy_from(need.claim, request + 1)
        self._step()
        failed: set[Hashable] = set()
        for index in range(start, len(self._offered)):
            device = self._offered[index]
            if not self._is_free(need, device) or not self._selects(need, device):
                continue
            if not self._constraints_allow(need, device):
                continue
            if failed and self._signature(device) in failed:
                continue
            self._take(need, device)
            if self._pick_devices(need, request, missing - 1, index + 1):
                return True
            self._give_back(need, device)
            failed.add(self._signature(device))
        return False

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise NoAllocation(TIMED_OUT)

    def _is_free(self, need: _Need, device: OfferedDevice) -> bool:
        taken = self._taken.get(device.id, ())
        if device.device.is_shared:
            return False
        if need.admin:
            return need.claim not in taken
        return not taken and device.id not in self._in_use

    def _constraints_allow(self, need: _Need, device: OfferedDevice) -> bool:
        return all(condition.allows(need, device) for condition in self._constraints[need.claim])

    def _take(self, need: _Need, device: OfferedDevice) -> None:
        for condition in self._constraints[need.claim]:
            condition.count(need, device, 1)
        self._taken.setdefault(device.id, []).append(need.claim)
        self._results[need.claim].append(
            Grant(
                request=need.request.full_name,
                class_name=need.request.class_name,
                device=device.id,
                admin_access=need.admin,
                node_name=device.slice.node_name,
                node_selector=device.slice.node_selector,
            )
        )

    def _give_back(self, need: _Need, device: OfferedDevice) -> None:
        for condition in self._constraints[need.claim]:
            condition.count(need, device, -1)
        self._taken[device.id].pop()
        self._results[need.claim].pop()

    # What a device is like

    def _selects(self, need: _Need, device: OfferedDevice) -> bool:
        verdict = self._verdict(need, device)
        if isinstance(verdict, str):
            raise NoAllocation(verdict)
        return verdict

    def _verdict(self, need: _Need, device: OfferedDevice) -> bool | str:
        """Whether a device is of the class and is selected; a text says why that can't be said."""
        if device.device.has_conditions:
            return False
        key = (id(need), device.id)
        known = self._verdicts.get(key)
        if known is None:
            known = self._verdicts[key] = self._evaluate(need, device)
        return known

    def _evaluate(self, need: _Need, device: OfferedDevice) -> bool | str:
        for each in need.selectors:
            verdict = self._questions.selects(each.text, device.device)
            if verdict is None:
                raise _Unanswered
            if isinstance(verdict, str):
                return UNDECIDED.format(each.owner, each.number, verdict)
            if not verdict:
                return False
        return True

    def _ask_all(self) -> None:
        """Note all questions about the devices at once, so that they are answered together."""
        needs = [need for claim in self._needs for alternatives in claim for need in alternatives]
        for device in self._offered:
            if device.device.has_conditions:
                continue
            for each in {each.text: None for need in needs for each in need.selectors}:
                if self._questions.are_many:
                    return
                self._questions.selects(each, device.device)

    def _signature(self, device: OfferedDevice) -> Hashable:
        """Equal for devices that nothing in this search can tell apart at the moment."""
        verdict = [
            self._verdict(need, device)
            for claim in self._needs
            for alternatives in claim
            for need in alternatives
        ]
        values = [
            device.device.attributes.get(condition.constraint.attribute)
            for conditions in self._constraints
            for condition in conditions
        ]
        taken = tuple(self._taken.get(device.id, ()))
        return (*map(str, verdict), *values, taken, device.id in self._in_use)
