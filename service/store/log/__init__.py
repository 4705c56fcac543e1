"""The log on PostgreSQL: extended, read page by page and in the past, compacted, and announced."""
