"""Priority classes, which set the priority of new pods."""

from typing import Literal

from service.model.core.primitives import Value

PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]


class PriorityClassFields(Value, frozen=True, kw_only=True):
    """The fields of a PriorityClass, and of an entry of the cluster setting `priorityClasses`."""

    value: int
    """The priority of pods of this class."""
    global_default: bool = False
    """Whether pods that name no class get this one; at most one class has it."""
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"
    """Never: no pod is proposed to make room for one of this class."""


class PriorityClassEntry(
    PriorityClassFields, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """An entry that says more than a number."""

    @property
    def shortest(self) -> "int | PriorityClassEntry":
        """The entry as shown in the setting: a number if it states only a value."""
        return self.value if self == PriorityClassEntry(value=self.value) else self
