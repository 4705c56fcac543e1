"""CEL expressions: syntax, worst-case costs, and evaluation within a budget."""
