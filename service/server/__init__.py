"""The processes of a server: a supervisor, its workers, and PostgreSQL, with their signals and ports."""
