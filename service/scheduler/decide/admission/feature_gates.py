"""Drops fields of features that a cluster has disabled, and warns about them."""

import msgspec

from service.model.cluster.features import NAMESPACE_SELECTOR
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.field_warnings import FEATURE_OFF, FieldWarnings, warning
from service.model.core.validators import entries_of
from service.model.pods.annotated_rules import PATH, annotation_of, rules_in
from service.model.pods.namespace_selectors import (
    namespace_selectors,
    uses_namespace_selector,
    without_namespace_selectors,
)
from service.model.policies.quota import CROSS_NAMESPACE
from service.model.policies.quota_rules import scopes_of
from service.model.registry.manifests import PodManifest, QuotaManifest
from service.scheduler.decide.context import DecisionContext


def without_features_off(
    context: DecisionContext, sent: PodManifest, stored: PodManifest | None
) -> PodManifest:
    """Return a pod without the fields of disabled features, unless the stored pod has them."""
    if not _loses_selectors(context, sent):
        return sent
    if stored is not None and uses_namespace_selector(stored.pod.spec.affinity):
        return sent
    return sent.with_spec(without_namespace_selectors(sent.template.decoded()), context.templates)


def warnings_of_features(context: DecisionContext, sent: PodManifest) -> FieldWarnings:
    """Return warnings about fields of disabled features, in the spec and in an annotation.

    The annotation is stored as sent, but selectors in it are ignored.
    """
    if not _loses_selectors(context, sent):
        return ()
    paths = [path for path, _ in namespace_selectors(sent.template.decoded())]
    annotation = annotation_of(sent.template.spec)
    if annotation is not None:
        selectors = namespace_selectors(rules_in(annotation))
        paths += [f"{PATH}.{path.removeprefix('spec.')}" for path, _ in selectors]
    return [warning(path, FEATURE_OFF) for path in paths]


def check_scopes(
    context: DecisionContext, sent: QuotaManifest, stored: QuotaManifest | None
) -> None:
    """Refuse a quota with a scope of a disabled feature, unless the stored quota has the scope.

    Raises:
        InvalidManifest: the quota has such a scope.
    """
    if context.replica.config.reads_namespace_selectors:
        return
    if stored is not None and CROSS_NAMESPACE in _scope_names(stored):
        return
    spec = entries_of(msgspec.json.decode(sent.render())).get("spec")
    errors = [
        FieldError(f"spec.{path}", f"the feature {NAMESPACE_SELECTOR} is switched off", scope)
        for path, scope in scopes_of(entries_of(spec))
        if scope == CROSS_NAMESPACE
    ]
    if errors:
        raise InvalidManifest(errors)


def _loses_selectors(context: DecisionContext, sent: PodManifest) -> bool:
    if context.replica.config.reads_namespace_selectors:
        return False
    return uses_namespace_selector(sent.pod.spec.affinity)


def _scope_names(quota: QuotaManifest) -> set[str]:
    return {scope.scope_name for scope in quota.quota.scopes}
