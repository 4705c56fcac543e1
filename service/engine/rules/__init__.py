"""Questions about required rules: which are broken, by whose fault, and what would have to change."""
