"""The truth: tables and log in PostgreSQL, the commit function, reads; and the same in memory."""
