"""By which fields and labels lists, watches and deletions select objects, and how lists order them."""
