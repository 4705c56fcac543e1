"""Which pending pods are tried next, and which changes of the cluster make another try worth it."""
