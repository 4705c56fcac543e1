"""The sandbox: child processes with little time and memory, in which expressions of tenants are evaluated."""

from service.sandbox.evaluator import Evaluator

__all__ = ["Evaluator"]
