"""What every handler works with: the services of the server, and idempotent answers."""
