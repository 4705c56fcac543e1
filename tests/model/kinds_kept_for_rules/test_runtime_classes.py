"""What a runtime class adds to its pods, compared with the reference."""

from typing import Any

import msgspec
from hypothesis import given, strategies as st

from service.model.policies.runtime_classes import RuntimeClassBody, merge_of
from service.model.registry.manifests import TemplateCache, parse_declared, parse_pod
from tests.reference.admission import merge_class
from tests.reference.resources import amounts

Manifest = dict[str, Any]

QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1000m", "2"]), max_size=2
)
SELECTORS = st.dictionaries(
    st.sampled_from(["runtime", "zone"]), st.sampled_from(["a", "b"]), max_size=2
)


@st.composite
def tolerations(draw: st.DrawFn) -> Manifest:
    sent: Manifest = {"effect": draw(st.sampled_from(["", "NoSchedule", "NoExecute"]))}
    if draw(st.booleans()):
        sent |= {"operator": "Exists", "key": draw(st.sampled_from(["", "dedicated", "gpu"]))}
    else:
        key, value = st.sampled_from(["dedicated", "gpu"]), st.sampled_from(["a", "b"])
        sent |= {"operator": "Equal", "key": draw(key), "value": draw(value)}
    if sent["effect"] == "NoExecute" and draw(st.booleans()):
        sent["tolerationSeconds"] = draw(st.integers(1, 2))
    return {name: value for name, value in sent.items() if value}


POD_SPECS = st.fixed_dictionaries(
    {"containers": st.just([{"name": "main"}])},
    optional={
        "overhead": QUANTITIES,
        "nodeSelector": SELECTORS,
        "tolerations": st.lists(tolerations(), max_size=3),
    },
)
CLASSES = st.fixed_dictionaries(
    {"handler": st.just("kata"), "metadata": st.just({"name": "sandboxed"})},
    optional={
        "overhead": st.fixed_dictionaries({"podFixed": QUANTITIES}),
        "scheduling": st.fixed_dictionaries(
            {}, optional={"nodeSelector": SELECTORS, "tolerations": st.lists(tolerations())}
        ),
    },
)


def merged(pod: Manifest, runtime_class: Manifest) -> Manifest | str:
    templates = TemplateCache()
    body = parse_declared("RuntimeClass", runtime_class).kept.body
    assert isinstance(body, RuntimeClassBody)
    manifest, merge = parse_pod(pod, templates), merge_of(body)
    refused = merge.conflict(manifest.pod.spec)
    if refused is not None:
        return refused.partition(": ")[0]
    once = manifest.amended(merge, templates)
    assert merge.conflict(once.pod.spec) is None
    assert once.amended(merge, templates) == once
    return msgspec.json.decode(once.template.spec_json)


@given(spec=POD_SPECS, runtime_class=CLASSES)
def test_a_class_adds_what_the_reference_adds(spec: Manifest, runtime_class: Manifest) -> None:
    pod = {"metadata": {"name": "web"}, "spec": spec}
    expected, found = merge_class(pod, runtime_class), merged(pod, runtime_class)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert normal(found) == normal(expected["spec"])


def normal(spec: Manifest) -> Manifest:
    """A spec in which what means the same is the same."""
    tolerations = [{"operator": "Equal", **each} for each in spec.get("tolerations") or []]
    return {
        "overhead": amounts(spec.get("overhead")),
        "nodeSelector": spec.get("nodeSelector") or {},
        "tolerations": sorted(tolerations, key=str),
    }
