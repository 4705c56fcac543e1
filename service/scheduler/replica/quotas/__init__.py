"""Resource quotas: what is used of each, and whether a pod may still come in."""

from service.scheduler.replica.quotas.ledger import Ledger, Usage
from service.scheduler.replica.quotas.refusals import refusal

__all__ = ["Ledger", "Usage", "refusal"]
