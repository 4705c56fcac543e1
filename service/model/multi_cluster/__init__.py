"""What placements over several clusters ask of each cluster, and the key of rules about clusters."""
