"""What decisions report about pods: conditions in their status, and events."""
