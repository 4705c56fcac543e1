"""Evaluates expressions that tenants write, in child processes with little time and memory."""

from service.sandbox.evaluator import Evaluator

__all__ = ["Evaluator"]
