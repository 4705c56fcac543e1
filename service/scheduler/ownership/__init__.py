"""Which worker decides the requests of which cluster: it is known by leases, and shared out evenly."""
