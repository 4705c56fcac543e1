"""The store: tables and log in PostgreSQL, with one class for each kind of stored data."""
