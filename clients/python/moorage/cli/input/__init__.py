"""Manifests that commands read from files, with pods in place of workloads."""
