"""The framework of plugins: what a plugin is asked, and of which changes it is notified."""
