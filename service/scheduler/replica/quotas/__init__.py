"""Resource quotas: their usage, and whether they have room for a pod."""

from service.scheduler.replica.quotas.ledger import Ledger, Usage
from service.scheduler.replica.quotas.refusals import refusal

__all__ = ["Ledger", "Usage", "refusal"]
