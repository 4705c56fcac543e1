"""Coordination between processes: leases, workers, replica reports, and heartbeats of nodes."""
