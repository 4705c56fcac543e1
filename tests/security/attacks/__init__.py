"""Attacks on a server as programs, each with what the server may suffer by it.

`python -m tests.security.attacks [NAME…]` runs them, one after the other, and prints a row of a Markdown table for each. To add
one, write a function that takes a `Target` and attacks it until it is killed, with `@attack("name", "What it does")`, in a
module that `__main__` imports.
"""
