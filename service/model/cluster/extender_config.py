"""Scheduler extenders listed in a profile, in the format of KubeSchedulerConfiguration v1."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec

from service.model.cluster.extender_rules import seconds_of
from service.model.core.primitives import Strict
from service.model.pods.pod import Container, PodSpec

TIMEOUT_SECONDS: Final = 5.0
"""The default timeout of a call to an extender, in seconds (DefaultExtenderTimeout)."""


class ExtenderTLSConfig(Strict, frozen=True, kw_only=True):
    """How an extender at an `https` address is identified."""

    insecure: bool = False
    """Whether its certificate is not verified."""
    server_name: str = ""
    """The name that its certificate has to have; empty: the host of `urlPrefix`."""
    ca_data: str = ""
    """PEM certificates, in base64, that have to have signed its own; empty: those that the server trusts."""


class ExtenderManagedResource(Strict, frozen=True, kw_only=True):
    """A resource that an extender manages."""

    name: str
    """Name of the resource."""
    ignored_by_scheduler: bool = False
    """May only be false: NodeResourcesFit judges every resource."""


class Extender(Strict, frozen=True, kw_only=True):
    """A service that is asked over HTTP which nodes are left for a pod, and how good they are."""

    url_prefix: str
    """The address to which `/` and a verb are added."""
    filter_verb: str = ""
    """The verb that filters; empty: it is not asked to filter."""
    prioritize_verb: str = ""
    """The verb that scores; empty: it is not asked to score."""
    weight: int = 0
    """How much its scores count; needed with `prioritizeVerb`."""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    """Whether `urlPrefix` has to be an `https` address."""
    tls_config: ExtenderTLSConfig | None = None
    """How the extender is identified."""
    http_timeout: str = ""
    """How long one call may take, such as `2s`; empty or zero: five seconds."""
    node_cache_capable: bool = False
    """Whether it knows the nodes, so that only their names are sent."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    """It is asked only for pods that request or limit one of these; empty: for all."""
    ignorable: bool = False
    """Whether pods are placed without it if it cannot be asked."""

    @property
    def timeout_seconds(self) -> float:
        """The time limit of one call, in seconds."""
        return seconds_of(self.http_timeout or "0") or TIMEOUT_SECONDS

    def is_interested(self, spec: PodSpec) -> bool:
        """Return whether to call the extender for a pod."""
        if not self.managed_resources:
            return True
        managed = {resource.name for resource in self.managed_resources}
        return any(
            _names(container, managed) for container in (*spec.containers, *spec.init_containers)
        )


def _names(container: Container, managed: set[str]) -> bool:
    resources = container.resources
    if resources is None:
        return False
    asked = (resources.requests or {}, resources.limits or {})
    return any(name in managed for names in asked for name in names)


class ExtenderHosts(msgspec.Struct, frozen=True):
    """The hosts at which extenders may run, from the server's setting `MOORAGE_EXTENDER_HOSTS`."""

    listed: str
    """Host names or addresses as in a URL, with or without a port, separated by commas."""

    def refuses(self, extender: Extender) -> str | None:
        """Return why calls to an extender are not allowed, or None."""
        parts = urlsplit(extender.url_prefix)
        host = (parts.hostname or "").lower()
        host = f"[{host}]" if ":" in host else host
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if {host, f"{host}:{port}"}.intersection(self._each()):
            return None
        return f"{host}:{port} is not in MOORAGE_EXTENDER_HOSTS of this server"

    def _each(self) -> Iterator[str]:
        return (host.strip().lower() for host in self.listed.split(","))
