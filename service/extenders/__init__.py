"""Asks services that speak kube-scheduler's extender protocol, over HTTP, for placements that need them."""

from service.extenders.http_extender import Extenders

__all__ = ["Extenders"]
