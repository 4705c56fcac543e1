"""The engine's state: columns of nodes, classes of pods, and counters of pods' relations."""
