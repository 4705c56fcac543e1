"""Plans: hypothetical changes to a cluster, and the steps that then lead to a goal."""
