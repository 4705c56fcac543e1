"""A cluster's configuration: settings, scheduling profiles, plugin arguments, extenders, and policies."""
