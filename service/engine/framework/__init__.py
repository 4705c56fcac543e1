"""The plugin framework: what a plugin implements, and the cluster events that it reacts to."""
