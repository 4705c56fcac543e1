"""A cluster in the memory of a worker, which follows the log, with the quotas and groups counted of it."""
