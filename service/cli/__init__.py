"""Commands of `moorage` that a server adds: they run, migrate, and verify one."""
