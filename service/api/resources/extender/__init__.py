"""The operations that kube-scheduler calls on Moorage as its extender."""

from service.api.resources.extender.routes import EXTENDER_HANDLERS

__all__ = ["EXTENDER_HANDLERS"]
