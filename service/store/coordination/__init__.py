"""What processes share and report: leases, workers, replicas, and the heartbeats of nodes."""
