"""The figures that a server tells about itself."""
