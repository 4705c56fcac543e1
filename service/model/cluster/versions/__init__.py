"""The Kubernetes versions whose scheduler a cluster can follow, one module each."""
