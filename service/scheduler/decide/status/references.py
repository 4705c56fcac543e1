"""How a message names an object that not everybody who reads the message may know of.

A message is stored and shown with objects of some namespaces, and everybody who may read these
namespaces reads it; so their objects are named in plain words. Any other object stands in a
reference, `<Pod bank/till>`, together with all that the message says of it,
`<Pod bank/till: what it lacks>`. No name, label, resource or taint contains `<` or `>`, so
references can be found in every sentence.
"""

import re
from collections.abc import Callable, Collection

BEGIN, END = "<", ">"

_REFERENCE = re.compile(r"<(?P<kind>[A-Za-z]+) (?P<namespace>[^\s/<>:]+)/[^<>]+>")
_WITHIN = str.maketrans(BEGIN + END, "()")


def reference(kind: str, namespace: str, name: str, about: str = "") -> str:
    """Name an object, and what is said about it, for those alone who may read the object."""
    said = f": {about.translate(_WITHIN)}" if about else ""
    return f"{BEGIN}{kind} {namespace}/{name}{said}{END}"


def pod_named(namespace: str, name: str, told_in: Collection[str]) -> str:
    """Name a pod in a message that the readers of the namespaces `told_in` will see."""
    if set(told_in) == {namespace}:
        return f"{namespace}/{name}"
    return reference("Pod", namespace, name)


def without_references(
    message: str, may_read: Callable[[str], bool], instead: Callable[[str], str]
) -> str:
    """Replace the references to objects that may not be read.

    `instead` gives the words that stand in place of an object of some kind.
    """

    def told(found: re.Match[str]) -> str:
        return found[0] if may_read(found["namespace"]) else instead(found["kind"])

    return _REFERENCE.sub(told, message)
