"""References: how a message names an object that some of its readers may not see.

A message is stored with objects of certain namespaces and visible to every reader of these
namespaces, so it names their objects in plain words. Any other object is named by a reference,
`<Pod bank/till>`, which encloses everything said about the object: `<Pod bank/till: what it
lacks>`. No name, label, resource, or taint contains `<` or `>`, so references can be recognized in
any sentence.
"""

import re
from collections.abc import Callable, Collection

BEGIN, END = "<", ">"

_REFERENCE = re.compile(r"<(?P<kind>[A-Za-z]+) (?P<namespace>[^\s/<>:]+)/[^<>]+>")
_WITHIN = str.maketrans(BEGIN + END, "()")


def reference(kind: str, namespace: str, name: str, about: str = "") -> str:
    """Return a reference to an object, with text about the object that only its readers may see."""
    said = f": {about.translate(_WITHIN)}" if about else ""
    return f"{BEGIN}{kind} {namespace}/{name}{said}{END}"


def pod_named(namespace: str, name: str, told_in: Collection[str]) -> str:
    """Return how to name a pod in a message for readers of the namespaces `told_in`."""
    if set(told_in) == {namespace}:
        return f"{namespace}/{name}"
    return reference("Pod", namespace, name)


def without_references(
    message: str, may_read: Callable[[str], bool], instead: Callable[[str], str]
) -> str:
    """Replace the references to objects that may not be read.

    `instead` returns the replacement text for an object of a kind.
    """

    def substitute(match: re.Match[str]) -> str:
        return match[0] if may_read(match["namespace"]) else instead(match["kind"])

    return _REFERENCE.sub(substitute, message)
