"""For plugins that are no part of Moorage: what they are written with, how servers find them, how they are tested."""
