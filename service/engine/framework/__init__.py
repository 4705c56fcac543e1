"""The plugin framework: the plugin interface, and the cluster events that plugins react to."""
