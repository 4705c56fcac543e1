"""Call services that implement kube-scheduler's extender protocol over HTTP."""

from service.extenders.http_extender import Extenders

__all__ = ["Extenders"]
