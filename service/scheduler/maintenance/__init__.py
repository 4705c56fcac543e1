"""Checks that replicas run on themselves while nothing is asked, and the reports of their state."""
