"""The processes of a server: supervisor, workers, and PostgreSQL, with their signals and ports."""
