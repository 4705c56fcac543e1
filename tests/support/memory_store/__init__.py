"""A store in memory that keeps the promises of the one on PostgreSQL, for simulations and tests."""
