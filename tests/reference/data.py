"""DataAffinity: nodes that have the data sets which a pod names."""

from tests.reference.node_plugins import Rejections, Scores
from tests.reference.view import Manifest, Verdict, View, labels_of, name_of, namespace_of, spec_of


def filter_data(view: View, pod: Manifest) -> Rejections:
    rejections = {}
    for name, node in view.nodes.items():
        lacking = [each for each in required(pod) if not has(view, pod, each, node)]
        reasons = [f'node(s) didn\'t have the data set "{each}"' for each in lacking]
        if reasons:
            rejections[name] = Verdict(reasons, unresolvable=True)
    return rejections


def prefilter(view: View, pod: Manifest) -> tuple[str, str] | None:
    """A data set that is not there rejects the pod on every node."""
    for each in required(pod):
        if data_set(view, pod, each) is None:
            return "DataAffinity", f'data set "{each}" not found'
    return None


def score_data(view: View, pod: Manifest, feasible: list[str]) -> Scores | None:
    preferred = (spec_of(pod).get("dataAffinity") or {}).get("preferred")
    if not preferred:
        return None
    sums = {
        name: sum(
            each["weight"]
            for each in preferred
            if has(view, pod, each["dataSet"], view.nodes[name])
        )
        for name in feasible
    }
    most = max(sums.values())
    return {name: 100 * total // most if most else 0 for name, total in sums.items()}


def required(pod: Manifest) -> list[str]:
    terms = (spec_of(pod).get("dataAffinity") or {}).get("required") or []
    return [each["dataSet"] for each in terms]


def data_set(view: View, pod: Manifest, name: str) -> Manifest | None:
    """The data set of this name in the pod's namespace."""
    found = (
        each
        for each in view.objects
        if each["kind"] == "DataSet"
        and (namespace_of(each), name_of(each)) == (namespace_of(pod), name)
    )
    return next(found, None)


def has(view: View, pod: Manifest, name: str, node: Manifest) -> bool:
    found = data_set(view, pod, name)
    if found is None:
        return False
    spec = found["spec"]
    return name_of(node) in (spec.get("nodes") or []) or any(
        labels_of(node).get(each["key"]) in each["values"] for each in spec.get("domains") or []
    )
