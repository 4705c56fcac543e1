"""Allocates volumes and devices to pods together with their nodes."""
