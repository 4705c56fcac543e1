"""Changes a cluster's configuration, as a regular revision."""

import msgspec
from msgspec.structs import replace

from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.cluster.config_rules import only_one_default
from service.model.cluster.extender_config import ExtenderHosts
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME
from service.model.json.patch import apply_patch
from service.model.registry.manifests import PriorityClassManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.node_lifecycle.client_writes import changed_taints
from service.scheduler.decide.object_writes import WriteResult, check_preconditions
from service.scheduler.protocol.answers import ConfigAnswer
from service.scheduler.protocol.intents import PatchConfig, PutConfig
from service.scheduler.replica.replica import Stored
from service.scheduler.replica.stored_kinds import ConfigManifest


def put_config(context: DecisionContext, intent: PutConfig) -> ConfigAnswer:
    """Replace the whole configuration, or keep it if none is given.

    A configuration without a Kubernetes version (absent or null), or without a choice of the rules
    where its code and its documentation differ, keeps the cluster's. So a client that sets its
    configuration at every start does not change what the cluster decides.

    Raises:
        InvalidManifest: a setting is unknown or has a wrong value, or an extender's host is not
            allowed; the paths begin below `config`.
        PreconditionFailed: a precondition on the configuration's version does not hold.
    """
    present = context.replica.config
    if intent.config is None:
        return _set(context, intent, present)
    kept = {"kubernetes": present.kubernetes, "kubernetesRules": present.kubernetes_rules}
    sent = intent.config
    kept = {name: value for name, value in kept.items() if sent.get(name) is None}
    return _set(context, intent, {**sent, **kept})


def patch_config(context: DecisionContext, intent: PatchConfig) -> ConfigAnswer:
    """Change individual settings. Raises the errors of `put_config`."""
    present = msgspec.json.decode(msgspec.json.encode(context.replica.config))
    patched = apply_patch(intent.patch_type, present, intent.patch)
    return _set(context, intent, patched)


def set_priority_class(context: DecisionContext, sent: PriorityClassManifest) -> WriteResult:
    """Set an entry of the setting `priorityClasses` from a PriorityClass.

    Raises:
        InvalidManifest: the class would be a second global default.
    """
    config, stored = context.replica.config, context.replica.get(CLUSTER_KIND, "", CLUSTER_NAME)
    assert stored is not None
    present = config.priority_class(sent.name)
    if present == sent.priority_class:
        return WriteResult("Unchanged", stored)
    default = config.default_priority_class()
    if sent.priority_class.global_default and default not in (None, sent.name):
        raise InvalidManifest([FieldError("globalDefault", only_one_default(default or ""))])
    classes = config.priority_classes | {sent.name: sent.priority_class.shortest}
    stored = _store(context, replace(config, priority_classes=classes))
    return WriteResult("Created" if present is None else "Changed", stored)


def refuse_hosts(
    config: ClusterConfig, hosts: ExtenderHosts | None, before: ClusterConfig | None = None
) -> None:
    """Refuse extenders on hosts that Moorage would never call.

    Extenders of the previous configuration are accepted, so that other settings can still change
    after a host was removed from the list.

    Raises:
        InvalidManifest: an extender's host is not allowed; the paths begin below `config`.
    """
    if hosts is None:
        return
    earlier = before.profiles if before is not None else ()
    known = {extender.url_prefix for profile in earlier for extender in profile.extenders}
    errors = [
        FieldError(f"profiles[{place}].extenders[{index}].urlPrefix", problem, extender.url_prefix)
        for place, profile in enumerate(config.profiles)
        for index, extender in enumerate(profile.extenders)
        if extender.url_prefix not in known and (problem := hosts.refuses(extender)) is not None
    ]
    if errors:
        raise InvalidManifest(errors)


def _set(
    context: DecisionContext, intent: PutConfig | PatchConfig, settings: object
) -> ConfigAnswer:
    stored = context.replica.get(CLUSTER_KIND, "", CLUSTER_NAME)
    check_preconditions(intent.preconditions, stored)
    config = settings if isinstance(settings, ClusterConfig) else parse_config(settings)
    refuse_hosts(config, intent.hosts, context.replica.config)
    before = context.replica.config
    if config != before:
        _store(context, config)
        for node, taints in changed_taints(context.replica, before, context.now):
            context.replica.put(node.with_taints(taints))
    return ConfigAnswer(revision=context.replica.revision, config=msgspec.json.encode(config))


def _store(context: DecisionContext, config: ClusterConfig) -> Stored:
    manifest = ConfigManifest(config=config, body=msgspec.json.encode(config))
    entry = context.replica.put(manifest)
    assert entry.after is not None
    return entry.after
