"""Labels, and selectors that match some of them: of pods, namespaces, and nodes."""

from tools.oracle.generators.draws import Draws, Labels, Manifest

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "rack"
TOPOLOGY_KEYS = (HOSTNAME, ZONE, REGION, RACK, "example.com/pool")

POD_LABELS = {
    "app": ("web", "db", "cache", "api"),
    "tier": ("front", "back"),
    "env": ("prod", "dev", "test"),
    "version": ("v1", "v2", ""),
    "pod-template-hash": ("7b9c1", "66aaf", "5d4f8"),
}
NAMESPACE_LABELS = {"team": ("a", "b", ""), "env": ("prod", "dev")}
NAMESPACES = ("default", "prod", "team-a", "team-b", "kube-system")
OPERATORS = {"In": 6, "NotIn": 3, "Exists": 2, "DoesNotExist": 2}
LABELS_SELECTED = 0.6
"""The share of selectors with `matchLabels`."""

Vocabulary = dict[str, tuple[str, ...]]


def labels_of(draws: Draws, vocabulary: Vocabulary, share: float = 0.6) -> Labels:
    """Draw labels; each key occurs in this share of all objects."""
    return {key: draws.choice(values) for key, values in vocabulary.items() if draws.happens(share)}


def requirement(draws: Draws, vocabulary: Vocabulary) -> Manifest:
    """Draw a requirement of a label selector; some keys and values occur nowhere."""
    key = draws.choice([*vocabulary, "absent"])
    operator = draws.weighted(OPERATORS)
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = [*vocabulary.get(key, ("x",)), "nowhere"]
    return {"key": key, "operator": operator, "values": draws.some(values, 1, 3)}


def selector(draws: Draws, vocabulary: Vocabulary) -> Manifest:
    """Draw a label selector, now and then an empty one."""
    if draws.happens(0.06):
        return {}
    drawn: Manifest = {}
    if draws.happens(LABELS_SELECTED):
        key = draws.choice(list(vocabulary))
        drawn["matchLabels"] = {key: draws.choice(vocabulary[key])}
    if not drawn or draws.happens(0.3):
        count = draws.weighted({1: 5, 2: 2, 3: 1})
        drawn["matchExpressions"] = [requirement(draws, vocabulary) for _ in range(count)]
    return drawn


def matching(draws: Draws, labels: Labels) -> Manifest:
    """Draw a selector that matches these labels; an empty one if there are none."""
    keys = draws.some(list(labels), 1, 2)
    return {"matchLabels": {key: labels[key] for key in keys}} if keys else {}


def namespaces(draws: Draws) -> list[Manifest]:
    """Draw a few namespaces, always with `default`; some names that pods use may be missing."""
    names = ["default", *draws.some(NAMESPACES[1:], 0, 4)]
    return [
        {
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/metadata.name": name,
                    **labels_of(draws, NAMESPACE_LABELS),
                },
            }
        }
        for name in names
    ]
