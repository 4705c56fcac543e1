"""Multi-cluster placement: pods placed across several clusters, and split groups."""
