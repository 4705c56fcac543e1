"""The tables: how they are declared, made, migrated and distributed, and who may use them."""
