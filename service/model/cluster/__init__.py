"""A cluster's configuration: its settings, profiles, plugins' arguments and extenders."""
