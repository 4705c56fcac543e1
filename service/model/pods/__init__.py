"""Pods: specs and their templates, affinity, groups, status, and warnings."""
