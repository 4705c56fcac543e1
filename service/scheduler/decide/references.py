"""How a message names an object that not everybody who reads the message may know of.

A message is stored, and told, with objects of some namespaces, and whoever may read these reads it: what is in them is
named in plain words. Anything else stands in a reference, `<Pod bank/till>`, together with all that the message says
of it, `<Pod bank/till: what it lacks>`. Neither `<` nor `>` is in any name, label, resource or taint, so a reference is
found in every sentence, whatever the sentence is.
"""

import re
from collections.abc import Callable, Collection

BEGIN, END = "<", ">"

_REFERENCE = re.compile(r"<(?P<kind>[A-Za-z]+) (?P<namespace>[^\s/<>:]+)/[^<>]+>")
_WITHIN = str.maketrans(BEGIN + END, "()")


def reference(kind: str, namespace: str, name: str, about: str = "") -> str:
    """An object, and what is said of it, which are for those alone who may read it."""
    said = f": {about.translate(_WITHIN)}" if about else ""
    return f"{BEGIN}{kind} {namespace}/{name}{said}{END}"


def pod_named(namespace: str, name: str, told_in: Collection[str]) -> str:
    """A pod, in a message that is told in these namespaces."""
    if set(told_in) == {namespace}:
        return f"{namespace}/{name}"
    return reference("Pod", namespace, name)


def without_references(
    message: str, may_read: Callable[[str], bool], instead: Callable[[str], str]
) -> str:
    """A message that refers only to objects of namespaces that may be read; `instead` has words for those of a kind."""

    def told(found: re.Match[str]) -> str:
        return found[0] if may_read(found["namespace"]) else instead(found["kind"])

    return _REFERENCE.sub(told, message)
