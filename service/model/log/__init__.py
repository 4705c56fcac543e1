"""A cluster's log: commits and their results, leases, events, audit, and history."""
