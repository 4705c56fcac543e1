"""The log on PostgreSQL: it is extended, read page by page, read in the past, and announced."""
