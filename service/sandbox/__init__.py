"""Child processes with tight time and memory limits, which evaluate tenants' expressions."""

from service.sandbox.evaluator import Evaluator

__all__ = ["Evaluator"]
