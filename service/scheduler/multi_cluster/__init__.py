"""Multi-cluster placement: pods over several clusters, and groups split across them."""
