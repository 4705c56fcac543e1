"""Plans: changes to a fork of the cluster, and what would have to be done then."""
