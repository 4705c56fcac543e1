"""What pods with equal specs share: defaults, merged keys, annotations' rules, warnings, worked out once."""
