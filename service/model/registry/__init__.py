"""Objects of all kinds between JSON and values."""
