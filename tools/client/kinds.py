"""The module `clients/python/moorage/kept_kinds.py`: the kinds that the server keeps for its rules."""

from service.model.registry.kinds import DECLARED_KINDS

HEADING = '''\
"""The kinds of objects that the server keeps for its rules, in the order of its own table.

`make client` writes this module.
"""

DECLARED_KINDS: tuple[tuple[str, str, bool, tuple[str, ...]], ...] = (
'''
ENDING = ''')
"""Of each kind its name, its plural, whether it has namespaces, and its short names."""
'''


def module() -> str:
    """Return the text of the module, before it is formatted."""
    rows = (
        (each.kind, each.plural, each.namespaced, tuple(each.short_names))
        for each in DECLARED_KINDS.values()
    )
    return HEADING + "".join(f"    {row},\n" for row in rows) + ENDING
