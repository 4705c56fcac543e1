"""The log on PostgreSQL: commits, pages, earlier revisions, compaction, and notifications."""
