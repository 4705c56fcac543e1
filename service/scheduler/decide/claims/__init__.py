"""Volumes and devices that pods get together with their nodes."""
