"""A cluster's log: commits and their results, leases, events, the audit log, and history."""
