"""What decisions record about pods: status conditions and events."""
