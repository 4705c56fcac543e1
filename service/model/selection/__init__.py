"""Selection and ordering of objects by fields and labels, for lists, watches, and deletions."""
