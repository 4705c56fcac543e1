"""The log of a cluster, and what is written with it: commits, events and the audit."""
