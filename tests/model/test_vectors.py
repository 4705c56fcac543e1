"""Every object of the conformance vectors is valid, and comes back as it was."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from service.model.cluster.cluster_config import parse_config
from service.model.registry.manifests import TemplateCache, parse_any
from tests.conformance.vectors import cases, config_of, traces
from tests.seeds import EXPLORING

SHARE = 6
"""The gate reads one in so many objects; the engine's tests read all of them without comparing."""

OPERATIONS = {"pod": "Pod", "node": "Node", "namespace": "Namespace"}


def objects() -> Iterator[tuple[str, Any]]:
    for case in (*cases(), *traces()):
        for kind, field in (("Namespace", "namespaces"), ("Node", "nodes"), ("Pod", "pods")):
            yield from ((kind, each) for each in case.get(field, []))
        for step in (case, *case.get("steps", [])):
            for field, kind in OPERATIONS.items():
                if isinstance(step.get(field), dict):
                    yield kind, step[field]


def test_every_object_of_the_vectors_is_accepted_and_keeps_its_fields():
    templates = TemplateCache()
    all_sent = {msgspec.json.encode({"kind": kind, **sent}) for kind, sent in objects()}
    assert len(all_sent) > 39_000
    for encoded in sorted(all_sent)[:: 1 if EXPLORING else SHARE]:
        sent = json.loads(encoded)
        body = json.loads(parse_any(encoded, templates).render())
        assert body["metadata"] == sent["metadata"]
        assert body.get("status") == sent.get("status")
        if sent["kind"] != "Pod":
            assert body.get("spec") == sent.get("spec")


def test_every_configuration_of_the_vectors_is_accepted():
    for case in (*cases(), *traces()):
        config = parse_config(config_of(case))
        assert config.hard_pod_affinity_weight == case["config"]["hardPodAffinityWeight"]
