"""Plugins that are no part of Moorage: how servers find them, and how they are tested."""
