"""What every handler works with: the services of the server, decided operations, and idempotent answers."""
