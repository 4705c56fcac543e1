"""Plans: changes to a fork of the cluster, and the steps that would follow."""
