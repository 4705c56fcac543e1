"""The database's schema: its declaration, migration, and distribution, and the role of servers."""
