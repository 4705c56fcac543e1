"""Takes what callers ask of a cluster, has it decided in batches, and commits each batch by compare-and-swap."""
