"""The engine's state: node columns, pod classes, and counters of relations between pods."""
