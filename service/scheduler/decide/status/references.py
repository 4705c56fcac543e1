"""References: how a message names an object that not all of its readers may know of.

A message is stored and shown with objects of some namespaces, and visible to all who may read these
namespaces; so their objects are named in plain words. Any other object is named by a reference,
`<Pod bank/till>`, which includes all that the message says about it, `<Pod bank/till: what it
lacks>`. No name, label, resource, or taint contains `<` or `>`, so references can be found in every
sentence.
"""

import re
from collections.abc import Callable, Collection

BEGIN, END = "<", ">"

_REFERENCE = re.compile(r"<(?P<kind>[A-Za-z]+) (?P<namespace>[^\s/<>:]+)/[^<>]+>")
_WITHIN = str.maketrans(BEGIN + END, "()")


def reference(kind: str, namespace: str, name: str, about: str = "") -> str:
    """Return a reference to an object, with text about it that only its readers may see."""
    said = f": {about.translate(_WITHIN)}" if about else ""
    return f"{BEGIN}{kind} {namespace}/{name}{said}{END}"


def pod_named(namespace: str, name: str, told_in: Collection[str]) -> str:
    """Return a pod's name for a message to the readers of the namespaces `told_in`."""
    if set(told_in) == {namespace}:
        return f"{namespace}/{name}"
    return reference("Pod", namespace, name)


def without_references(
    message: str, may_read: Callable[[str], bool], instead: Callable[[str], str]
) -> str:
    """Replace the references to objects that may not be read.

    `instead` returns the words that replace an object of a kind.
    """

    def substitute(match: re.Match[str]) -> str:
        return match[0] if may_read(match["namespace"]) else instead(match["kind"])

    return _REFERENCE.sub(substitute, message)
