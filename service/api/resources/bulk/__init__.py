"""Bulk operations: apply many objects, report the status of many pods, and export a cluster."""
