"""A cluster in the memory of a worker: loaded, followed along the log, with the quotas and pod groups that are counted of it."""
