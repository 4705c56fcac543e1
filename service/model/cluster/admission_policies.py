"""Admission policies: expressions that must be true of every created or changed pod."""

from typing import Literal

from service.model.core.primitives import LabelSelector, Strict

Operation = Literal["Create", "Update"]


class AdmissionPolicy(Strict, frozen=True, kw_only=True):
    """An expression that has to be true of pods, else they are denied."""

    id: str
    """Name of the policy, which denials tell."""
    expression: str
    """A CEL expression that is true of what may be admitted. It can speak of `object`, `oldObject`,
    `namespaceObject` (each null where there is none) and `request`."""
    message: str | None = None
    """What a denial says; null: the expression itself."""
    operations: tuple[Operation, ...] = ("Create", "Update")
    """On which operations the policy is asked."""
    namespace_selector: LabelSelector | None = None
    """The namespaces whose pods it is asked about; null: all."""
