"""The truth: tables and log in PostgreSQL, and one part of the store for each thing that is kept."""
