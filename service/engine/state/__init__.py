"""What the engine knows of a cluster: columns of nodes, classes of pods, and counters of their relations."""
