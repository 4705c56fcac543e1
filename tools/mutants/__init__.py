"""Small bugs planted in the sources one by one, each with the tests that have to find it.

A list of them is kept in `tests/mutants/*.toml`. A test that no bug can turn red proves nothing, and
a bug that no test finds could be in the service now.
"""
