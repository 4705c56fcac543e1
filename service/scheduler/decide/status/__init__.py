"""What decisions tell about pods: conditions in their status, and events."""
