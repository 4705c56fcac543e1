"""Hypothesis strategies for clusters in which rules, labels and names often meet.

A `World` is a small vocabulary with most features left out (swarm testing): few keys, few values,
few namespaces, so that selectors select, domains are shared and rules collide. Manifests are valid
for the service, with requests explicit as after admission.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests import volume_strategies

Manifest = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KEYS = (HOSTNAME, "zone", "rack")
SELECTING = ("labelSelector", "matchLabelKeys")
LABELS = {"app": ("a", "b", "c"), "tier": ("x", "y"), "env": ("prod",)}
REVISION = "hash"
"""A label that only `matchLabelKeys` and `mismatchLabelKeys` name, and no selector."""
NAMESPACES = ("default", "shop", "kube-system", "unlisted")
UNLISTED = "unlisted"
"""A namespace that is never stored."""
TEAMS = ("red", "blue")
NODES = tuple(f"n{number}" for number in range(1, 7))
NODE_NAMES = st.sampled_from(NODES)
TAINT_KEYS = ("dedicated", "node.kubernetes.io/unschedulable")
IMAGES = {"web:1": 400 * 1024**2, "registry:5000/db:latest": 900 * 1024**2}

PLACEMENT = ("requiredDuringSchedulingIgnoredDuringExecution",) * 3 + (
    "requiredDuringSchedulingRequiredDuringExecution",
)
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

POD_FEATURES = (
    "affinity",
    "anti-affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "spread",
    "soft-spread",
    "namespaces",
)
DEFAULT_SPREAD = "default-spread"
"""Stands for worlds with services and owners of pods, whose selectors the default constraints take."""
DATA = "data"
"""Stands for worlds in which pods work on data sets."""
VOLUMES = "volumes"
"""Stands for worlds in which pods have claims and disks."""
NODE_FEATURES = (
    "node-affinity",
    "node-preferences",
    "taints",
    "ports",
    "resources",
    "images",
    "declared-features",
    "named-node",
)


@dataclass(frozen=True)
class World:
    """The keys, values and names from which manifests are drawn."""

    features: frozenset[str]
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    namespaces: tuple[str, ...]

    @property
    def stored(self) -> list[str]:
        """The namespaces that may be stored."""
        return [name for name in self.namespaces if name != UNLISTED] or ["default"]

    def has(self, feature: str) -> bool:
        return feature in self.features


def worlds(features: tuple[str, ...] = POD_FEATURES + NODE_FEATURES) -> SearchStrategy[World]:
    """Worlds with some of the features."""
    return st.builds(
        World,
        features=st.frozensets(st.sampled_from(features), min_size=2, max_size=5),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True).map(tuple),
        labels=st.lists(st.sampled_from(tuple(LABELS)), min_size=1, max_size=2, unique=True).map(
            tuple
        ),
        namespaces=st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=3, unique=True).map(
            tuple
        ),
    )


def sometimes(strategy: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """A strategy that draws from another one half of the time, and None otherwise."""
    return st.none() | strategy


def present(**fields: Any) -> Manifest:
    """A manifest of the given fields, without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}


# Settings


@st.composite
def configs(draw: DrawFn, world: World) -> Manifest:
    """A cluster's configuration; every setting is mostly left at its default."""
    settings = {
        "kubernetes": st.sampled_from(("1.35", "1.36", "1.37")),
        "kubernetesRules": st.sampled_from(("Implemented", "Documented")),
        "semantics": st.sampled_from(("Kubernetes", "DesignDocuments")),
        "emptyNodeSelectorTerm": st.sampled_from(("MatchNone", "MatchAll")),
        "requiredAffinityTerms": st.sampled_from(("SamePod", "PerTerm")),
        "emptyNamespaceList": st.sampled_from(("OwnNamespace", "AllNamespaces")),
        "preferredTermWeight": st.sampled_from(("PerPod", "PerTerm")),
        "hardPodAffinityWeight": st.sampled_from((0, 1, 7, 100)),
        "symmetricPreferredAffinity": st.booleans(),
        "symmetricPreferredAntiAffinity": st.booleans(),
        "daemonNamespaces": st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True),
    }
    chosen = draw(st.lists(st.sampled_from(tuple(settings)), max_size=3, unique=True))
    config = {name: draw(settings[name]) for name in chosen}
    if world.has("resources"):
        config |= draw(scoring())
    if (world.has("spread") or world.has("soft-spread")) and draw(st.booleans()):
        defaults = draw(constraints(world))
        config["defaultTopologySpreadConstraints"] = defaults
    if world.has(DEFAULT_SPREAD):
        config |= draw(default_spreads(world))
    if world.has("declared-features") or world.has(VOLUMES):
        config["kubernetes"] = draw(st.sampled_from(("1.35", "1.36", "1.37")))
    return config


@st.composite
def default_spreads(draw: DrawFn, world: World) -> Manifest:
    """The built-in default constraints or others, most of which leave the selector to services and owners."""
    if draw(st.booleans()):
        return {"defaultTopologySpread": "System", "defaultTopologySpreadConstraints": []}
    kinds = st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))
    one = draw(constraint(world, draw(st.sampled_from(world.keys)), draw(kinds)))
    if draw(st.integers(0, 3)):
        one = {name: each for name, each in one.items() if name not in SELECTING}
    return {"defaultTopologySpreadConstraints": [one]}


@st.composite
def scoring(draw: DrawFn) -> Manifest:
    strategy = draw(
        st.sampled_from(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    )
    if strategy != "RequestedToCapacityRatio":
        return {"scoringStrategy": strategy}
    utilizations = draw(st.lists(st.integers(0, 100), min_size=2, max_size=5, unique=True))
    shape = [
        {"utilization": utilization, "score": draw(st.integers(0, 10))}
        for utilization in sorted(utilizations)
    ]
    return {"scoringStrategy": strategy, "requestedToCapacityRatio": {"shape": shape}}


# Cluster-scoped objects


def namespaces(world: World) -> SearchStrategy[Manifest]:
    return st.builds(namespace, st.sampled_from(world.stored), sometimes(st.sampled_from(TEAMS)))


def namespace(name: str, team: str | None) -> Manifest:
    return {"metadata": {"name": name, "labels": present(team=team)}}


@st.composite
def nodes(draw: DrawFn, world: World, names: SearchStrategy[str] = NODE_NAMES) -> Manifest:
    name = draw(names)
    manifest: Manifest = {
        "metadata": {"name": name, "labels": draw(node_labels(world, name))},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "20"}},
        "spec": {},
    }
    if world.has("resources"):
        manifest["status"] = draw(capacities())
    if world.has("taints"):
        manifest["spec"] = draw(taints_and_cordons())
    if world.has("images"):
        held = draw(st.lists(st.sampled_from(tuple(IMAGES)), max_size=2, unique=True))
        manifest["status"]["images"] = [
            {"names": [image], "sizeBytes": IMAGES[image]} for image in held
        ]
    if world.has("declared-features"):
        declared = st.lists(st.sampled_from(DECLARED_FEATURES), unique=True).map(sorted)
        manifest["status"]["declaredFeatures"] = draw(declared)
    return manifest


@st.composite
def node_labels(draw: DrawFn, world: World, name: str) -> dict[str, str]:
    """Topology labels that some nodes lack, hosts that share a name, and ordinary labels."""
    values: dict[str, SearchStrategy[str]] = {
        "zone": st.sampled_from(("z1", "z2", "z3")),
        "rack": st.sampled_from(("r1", "r2")),
        HOSTNAME: st.sampled_from((name, name, name, "n1")),
    }
    labels = {
        key: draw(values[key]) for key in world.keys if draw(st.integers(0, 5)) or key == HOSTNAME
    }
    if world.has(DEFAULT_SPREAD):
        labels |= present(**{ZONE: draw(sometimes(st.sampled_from(("z1", "z2", ""))))})
        if draw(st.integers(0, 5)) == 0:
            labels.pop(HOSTNAME, None)
    if world.has("node-affinity") or world.has("node-preferences") or world.has("spread"):
        labels |= present(
            disk=draw(sometimes(st.sampled_from(("ssd", "hdd")))),
            gen=draw(sometimes(st.sampled_from(("1", "02", "3", "x")))),
        )
    if world.has(VOLUMES):
        labels |= draw(volume_strategies.node_labels())
    return labels


@st.composite
def capacities(draw: DrawFn) -> Manifest:
    amounts = present(
        cpu=draw(st.sampled_from(("500m", "1", "2", "0", None))),
        memory=draw(st.sampled_from(("512Mi", "1Gi", "2e9", None))),
        pods=draw(st.sampled_from(("1", "3", "10", "10"))),
    )
    if draw(st.booleans()):
        amounts["example.com/gpu"] = draw(st.sampled_from(("0", "1", "2")))
    if draw(st.booleans()):
        amounts["ephemeral-storage"] = "1Gi"
    if draw(st.integers(0, 3)):
        return {"allocatable": amounts, "capacity": {"cpu": "64", "memory": "64Gi", "pods": "99"}}
    return {"capacity": amounts}


@st.composite
def taints_and_cordons(draw: DrawFn) -> Manifest:
    effects = st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))
    one = st.builds(
        lambda key, value, effect: present(key=key, value=value, effect=effect),
        st.sampled_from(TAINT_KEYS),
        sometimes(st.sampled_from(("db", "web"))),
        effects,
    )
    taints = st.lists(one, max_size=2, unique_by=lambda taint: (taint["key"], taint["effect"]))
    return {"taints": draw(taints), "unschedulable": draw(st.integers(0, 4)) == 0}


# Selectors


@st.composite
def selectors(draw: DrawFn, vocabulary: dict[str, tuple[str, ...]]) -> Manifest:
    """A label selector over a vocabulary; now and then an empty one."""
    key = draw(st.sampled_from(tuple(vocabulary)))
    value = st.sampled_from(vocabulary[key])
    kind = draw(st.sampled_from(("labels", "labels", "In", "NotIn", "Exists", "Absent", "empty")))
    match kind:
        case "labels":
            return {"matchLabels": {key: draw(value)}}
        case "In" | "NotIn":
            values = draw(st.lists(value, min_size=1, max_size=2, unique=True))
            return {"matchExpressions": [{"key": key, "operator": kind, "values": values}]}
        case "Exists":
            return {"matchExpressions": [{"key": key, "operator": "Exists"}]}
        case "Absent":
            return {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}
    return {}


def pod_selectors(world: World) -> SearchStrategy[Manifest]:
    return selectors({key: LABELS[key] for key in world.labels})


@st.composite
def terms(draw: DrawFn, world: World) -> Manifest:
    """A pod (anti-)affinity term."""
    term: Manifest = {"topologyKey": draw(st.sampled_from(world.keys))}
    selector = draw(pod_selectors(world) if draw(st.integers(0, 9)) else st.none())
    if selector is not None:
        term["labelSelector"] = selector
        term |= draw(
            st.sampled_from(
                ({}, {}, {}, {"matchLabelKeys": [REVISION]}, {"mismatchLabelKeys": [REVISION]})
            )
        )
    if world.has("namespaces") and draw(st.booleans()):
        listed = st.lists(st.sampled_from(world.namespaces), max_size=2, unique=True)
        term |= present(
            namespaces=draw(sometimes(listed)),
            namespaceSelector=draw(selectors({"team": TEAMS}) | st.none()),
        )
        if draw(st.integers(0, 2)) == 0:
            term["exceptNamespaceSelector"] = draw(selectors({"team": TEAMS}))
    return term


@st.composite
def connections(draw: DrawFn, world: World) -> Manifest:
    """Pods that a pod talks with, and how much."""
    listed = st.lists(st.sampled_from(world.namespaces), min_size=1, max_size=2, unique=True)
    return present(
        topologyKey=draw(st.sampled_from(world.keys)),
        labelSelector=draw(sometimes(pod_selectors(world))),
        namespaces=draw(sometimes(listed)) if world.has("namespaces") else None,
        weight=draw(st.sampled_from((1, 100, 1_000_000))),
    )


# Pods


@st.composite
def pods(draw: DrawFn, world: World, name: str) -> Manifest:
    """A pod as it is submitted, not yet placed."""
    metadata = {"name": name, "namespace": draw(st.sampled_from(world.namespaces))}
    metadata["labels"] = draw(pod_labels(world))
    if world.has(DEFAULT_SPREAD) and draw(st.booleans()):
        metadata["ownerReferences"] = [draw(owner_references())]
    spec: Manifest = {"containers": [{"name": "main"}]}
    if world.has("resources"):
        spec = draw(requests())
    if affinity := draw(affinities(world)):
        spec["affinity"] = affinity
    if world.has("preferred-affinity") and draw(st.integers(0, 2)) == 0:
        spec["connections"] = draw(st.lists(connections(world), min_size=1, max_size=2))
    if draw(st.booleans()) and (spread := draw(constraints(world))):
        spec["topologySpreadConstraints"] = [draw(over_namespaces(world, each)) for each in spread]
    for feature, part in NODE_PARTS.items():
        if world.has(feature) and draw(st.booleans()):
            draw(part(spec))
    status = draw(resizes(spec)) if world.has("resources") and not draw(st.integers(0, 3)) else None
    if world.has(DATA) and draw(st.integers(0, 3)):
        spec["dataAffinity"] = draw(data_affinities())
    if world.has(VOLUMES):
        metadata["uid"] = f"u-{name}"
        spec["volumes"] = [*spec.get("volumes", []), *draw(volume_strategies.pod_volumes())]
    return present(metadata=metadata, spec=spec, status=status)


DATA_SETS = ("genomes", "maps")


@st.composite
def data_affinities(draw: DrawFn) -> Manifest:
    """The data sets that a pod works on, of which some may not be there."""
    preferred = st.fixed_dictionaries(
        {"dataSet": st.sampled_from(DATA_SETS), "weight": st.sampled_from((1, 30, 100))}
    )
    names = draw(st.lists(st.sampled_from(DATA_SETS), max_size=1))
    return {
        "required": [{"dataSet": name} for name in names],
        "preferred": draw(st.lists(preferred, max_size=2, unique_by=lambda each: each["dataSet"])),
    }


@st.composite
def data_sets(draw: DrawFn, world: World) -> Manifest:
    """Where data is; perhaps nowhere."""
    domains = st.fixed_dictionaries(
        {
            "key": st.sampled_from(("zone", "rack")),
            "values": st.lists(st.sampled_from(("z1", "z2", "r1")), min_size=1, max_size=2),
        }
    )
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "DataSet",
        "metadata": {
            "name": draw(st.sampled_from(DATA_SETS)),
            "namespace": draw(st.sampled_from(world.namespaces)),
        },
        "spec": present(
            nodes=draw(sometimes(st.lists(NODE_NAMES, max_size=2))),
            domains=draw(sometimes(st.lists(domains, max_size=2))),
        ),
    }


OWNERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
OWNER_NAMES = ("one", "two")


@st.composite
def owner_references(draw: DrawFn) -> Manifest:
    """Now and then of a kind that has no selector, or to an owner that is no controller."""
    kind = draw(st.sampled_from(tuple(OWNERS)))
    version = OWNERS[kind] if draw(st.integers(0, 4)) else "extensions/v1beta1"
    name = draw(st.sampled_from(OWNER_NAMES))
    manages = {"controller": True} if draw(st.integers(0, 4)) else {}
    return {"apiVersion": version, "kind": kind, "name": name, **manages}


@st.composite
def selecting_objects(draw: DrawFn, world: World) -> Manifest:
    """A service, or an object that may own pods."""
    kind = draw(st.sampled_from(("Service", "Service", *OWNERS)))
    name, namespace = draw(st.sampled_from(OWNER_NAMES)), draw(st.sampled_from(world.namespaces))
    labels = draw(sometimes(pod_labels(world)))
    by_labels = kind in ("Service", "ReplicationController")
    selector = labels if by_labels else draw(sometimes(pod_selectors(world)))
    return {
        "apiVersion": OWNERS.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": present(selector=selector),
    }


def pod_labels(world: World) -> SearchStrategy[dict[str, str]]:
    optional = {key: st.sampled_from(LABELS[key]) for key in world.labels}
    return st.fixed_dictionaries({}, optional=optional | {REVISION: st.sampled_from(("r1", "r2"))})


@st.composite
def affinities(draw: DrawFn, world: World) -> Manifest:
    affinity: Manifest = {}
    for kind, required, preferred in (
        ("podAffinity", "affinity", "preferred-affinity"),
        ("podAntiAffinity", "anti-affinity", "preferred-anti-affinity"),
    ):
        own = {}
        if world.has(required) and draw(st.booleans()):
            some = st.lists(terms(world), min_size=1, max_size=2)
            chosen = draw(some)
            variant = draw(st.sampled_from(PLACEMENT))
            if required == "anti-affinity":
                chosen = [limited(term, draw(st.sampled_from(LIMITS))) for term in chosen]
            elif variant == PLACEMENT[0]:
                chosen = [term | draw(st.sampled_from(EXEMPTING)) for term in chosen]
            own[variant] = chosen
        if world.has(preferred) and draw(st.booleans()):
            weighted = st.fixed_dictionaries(
                {"weight": st.sampled_from((1, 10, 100)), "podAffinityTerm": terms(world)}
            )
            own[PREFERRED] = draw(st.lists(weighted, min_size=1, max_size=2))
        if own:
            affinity[kind] = own
    if node_affinity := draw(node_affinities(world)):
        affinity["nodeAffinity"] = node_affinity
    return affinity


LIMITS = (None, None, 1, 2, 3)
"""How many pods a term of required anti-affinity allows in a domain; None: no other."""


EXEMPTING = ({}, {}, {"firstPodExempt": True})
"""Whether a term of required affinity is left out for the first pod."""


def limited(term: Manifest, most: int | None) -> Manifest:
    return term | present(maxPerDomain=most)


@st.composite
def node_affinities(draw: DrawFn, world: World) -> Manifest:
    own: Manifest = {}
    if world.has("node-affinity") and draw(st.booleans()):
        variants = draw(st.lists(st.sampled_from(PLACEMENT), min_size=1, max_size=2, unique=True))
        for variant in variants:
            some = st.lists(node_terms(named=world.has("named-node")), min_size=1, max_size=2)
            own[variant] = {"nodeSelectorTerms": draw(some)}
    if world.has("node-preferences") and draw(st.booleans()):
        weighted = st.fixed_dictionaries(
            {"weight": st.sampled_from((1, 30, 100)), "preference": node_terms(named=False)}
        )
        own[PREFERRED] = draw(st.lists(weighted, min_size=1, max_size=3))
    return own


@st.composite
def node_terms(draw: DrawFn, *, named: bool) -> Manifest:
    """A node selector term over `disk` and `gen`, and if `named` over names; sometimes it is empty."""
    compared = st.builds(
        lambda operator, value: {"key": "gen", "operator": operator, "values": [value]},
        st.sampled_from(("Gt", "Lt")),
        st.sampled_from(("1", "2")),
    )
    plain = selectors({"disk": ("ssd", "hdd"), "gen": ("1", "02", "x")}).map(
        lambda selector: selector.get("matchExpressions", [])
    )
    expressions = draw(plain | compared.map(lambda one: [one]))
    term: Manifest = {"matchExpressions": expressions} if expressions else {}
    if named and draw(st.booleans()):
        fields = st.builds(
            lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
            st.sampled_from(("In", "In", "NotIn")),
            NODE_NAMES,
        )
        term["matchFields"] = draw(st.lists(fields, min_size=1, max_size=2))
    return term


@st.composite
def constraints(draw: DrawFn, world: World) -> list[Manifest]:
    """Spread constraints, no two alike in key and kind."""
    kinds = [
        (key, when)
        for feature, when in (("spread", "DoNotSchedule"), ("soft-spread", "ScheduleAnyway"))
        if world.has(feature)
        for key in world.keys
    ]
    if not kinds:
        return []
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2, unique=True))
    return [draw(constraint(world, key, when)) for key, when in chosen]


@st.composite
def over_namespaces(draw: DrawFn, world: World, one: Manifest) -> Manifest:
    """A pod's constraint, which may count the pods of other namespaces."""
    if not world.has("namespaces") or draw(st.booleans()):
        return one
    return one | {"namespaceSelector": draw(selectors({"team": TEAMS}))}


@st.composite
def constraint(draw: DrawFn, world: World, key: str, when: str) -> Manifest:
    policies = sometimes(st.sampled_from(("Honor", "Ignore")))
    one = present(
        topologyKey=key,
        whenUnsatisfiable=when,
        maxSkew=draw(st.sampled_from((1, 1, 2, 3))),
        nodeAffinityPolicy=draw(policies),
        nodeTaintsPolicy=draw(policies),
    )
    if when == "DoNotSchedule":
        one |= present(minDomains=draw(sometimes(st.integers(1, 4))))
    if draw(st.integers(0, 9)):
        one["labelSelector"] = draw(pod_selectors(world))
        if draw(st.integers(0, 3)) == 0:
            one["matchLabelKeys"] = [REVISION]
    return one


QUANTITIES = {
    "cpu": ("0", "100m", "250m", "1", "0.0005"),
    "memory": ("0", "128Mi", "300M", "1Gi"),
    "example.com/gpu": ("0", "1"),
    "ephemeral-storage": ("500Mi",),
}


@st.composite
def amounts(draw: DrawFn, names: tuple[str, ...] = tuple(QUANTITIES)) -> Manifest:
    chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    requests = {name: draw(st.sampled_from(QUANTITIES[name])) for name in chosen}
    limits = {name: each for name, each in requests.items() if "/" in name}
    return {"requests": requests} | ({"limits": limits} if limits else {})


@st.composite
def requests(draw: DrawFn) -> Manifest:
    """The containers of a spec, with init containers, sidecars, overhead, pod-level requests."""
    containers = draw(st.lists(amounts(), min_size=1, max_size=2))
    spec: Manifest = {
        "containers": [
            {"name": f"c{number}", "resources": each} for number, each in enumerate(containers)
        ]
    }
    if draw(st.integers(0, 2)) == 0:
        initial = draw(st.lists(st.tuples(amounts(), st.booleans()), min_size=1, max_size=3))
        spec["initContainers"] = [
            {"name": f"i{number}", "resources": each}
            | ({"restartPolicy": "Always"} if side else {})
            for number, (each, side) in enumerate(initial)
        ]
    if draw(st.integers(0, 3)) == 0:
        spec["overhead"] = {"cpu": "50m", "memory": "64Mi"}
    if draw(st.integers(0, 3)) == 0:
        spec["resources"] = draw(amounts(("cpu", "memory")))
    return spec


@st.composite
def resizes(draw: DrawFn, spec: Manifest) -> Manifest:
    """What a status says of a resize in place; whether an empty field is there may matter."""
    quantities = st.none() | st.just({}) | amounts(("cpu", "memory")).map(lambda e: e["requests"])
    resources = st.none() | st.just({}) | quantities.map(lambda each: present(requests=each))

    def statuses(field: str) -> Manifest:
        reported = [each["name"] for each in spec.get(field) or [] if draw(st.integers(0, 3))]
        return [
            present(name=name, resources=draw(resources), allocatedResources=draw(quantities))
            for name in reported
        ]

    reasons = draw(st.lists(st.sampled_from(("Infeasible", "Deferred")), max_size=2))
    pending = {"type": "PodResizePending", "status": "True"}
    return present(
        containerStatuses=statuses("containers"),
        initContainerStatuses=statuses("initContainers"),
        resources=draw(resources),
        allocatedResources=draw(quantities),
        conditions=[pending | {"reason": reason} for reason in reasons],
    )


@st.composite
def tolerations(draw: DrawFn, spec: Manifest) -> None:
    one = st.builds(
        lambda key, value, effect: present(
            key=key,
            operator="Exists" if value is None else "Equal",
            value=value,
            effect=effect,
        ),
        st.sampled_from(TAINT_KEYS),
        sometimes(st.sampled_from(("db", "web"))),
        sometimes(st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))),
    )
    spec["tolerations"] = draw(st.lists(one | st.just({"operator": "Exists"}), max_size=2))


@st.composite
def ports(draw: DrawFn, spec: Manifest) -> None:
    one = st.builds(
        lambda port, protocol, ip: present(
            containerPort=80, hostPort=port, protocol=protocol, hostIP=ip
        ),
        st.sampled_from((80, 443)),
        sometimes(st.sampled_from(("TCP", "UDP"))),
        sometimes(st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2"))),
    )
    spec["containers"][0]["ports"] = [draw(one)]


@st.composite
def images(draw: DrawFn, spec: Manifest) -> None:
    names = st.sampled_from(("web:1", "registry:5000/db", "other"))
    spec["containers"][0]["image"] = draw(names)
    mounted = draw(st.lists(names, max_size=2))
    if mounted:
        spec["volumes"] = [
            {"name": f"files{number}", "image": {"reference": name}}
            for number, name in enumerate(mounted)
        ]


DECLARED_FEATURES = (
    "Other",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)


@st.composite
def feature_needs(draw: DrawFn, spec: Manifest) -> None:
    """Fields for which a node has to declare a feature, and values for which it need not."""
    container = spec["containers"][0]
    match draw(st.sampled_from(("restart", "mount", "users"))):
        case "restart":
            action = draw(st.sampled_from(("Restart", "RestartAllContainers")))
            exits = {"operator": "In", "values": [42]}
            container["restartPolicyRules"] = [{"action": action, "exitCodes": exits}]
        case "mount":
            options = draw(st.sampled_from(([], ["noexec"])))
            mounts = [{"name": "v", "mountPath": "/v", "bindMountOptions": options}]
            container["volumeMounts"] = [{"name": "w", "mountPath": "/w"}, *mounts]
        case "users" if not container.get("ports"):
            spec["hostNetwork"], spec["hostUsers"] = True, draw(st.booleans())


@st.composite
def node_selectors(draw: DrawFn, spec: Manifest) -> None:
    spec["nodeSelector"] = {"disk": draw(st.sampled_from(("ssd", "hdd")))}


NODE_PARTS = {
    "taints": tolerations,
    "ports": ports,
    "images": images,
    "declared-features": feature_needs,
    "node-affinity": node_selectors,
}
"""For each feature, the strategy for what it adds to a spec."""
