"""What a plugin is: what it is asked, and of which changes it is told."""
