"""Names whose order is easily got wrong: as bytes they stand as here, in most languages not."""

NAMES = ("0", "00", "a", "a--a", "a-0", "a-a", "a.", "a.0", "a.a", "a0", "aa", "ab", "b", "z" * 253)
"""`-` and `.` come before digits, and those before letters; what is longer comes later."""
SCOPES = ("a", "a-0", "a-a", "a0", "aa", "b")
"""Such names of namespaces, which have no dots."""
