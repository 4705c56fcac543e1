"""Pod groups: which pods are placed together, in which domain, and which members are waiting."""
