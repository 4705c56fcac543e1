"""Small bugs (mutants) that are planted in the sources, each with the tests that have to find it.

`tests/mutants/*.toml` lists them. A test that no bug can turn red proves nothing, and a bug that no
test finds could be in the service now.
"""
