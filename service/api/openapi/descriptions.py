"""Describes the Kubernetes fields that scheduling reads, for the OpenAPI document.

Fields of Moorage's own types are described where they are declared. Keys here are
`<Schema>.<field>` as in the document; `*.<field>` holds for every schema without its own.
"""

from collections.abc import Mapping

_LABELS_OF_PODS = "Which pods the rule is about; null selects no pod, `{}` every pod."
_REQUESTS = "What is set aside, by resource name; taken from `limits` where absent."

DESCRIPTIONS: Mapping[str, str] = {
    "*.apiVersion": "Kubernetes API version of the object.",
    "*.kind": "Kubernetes kind of the object.",
    "*.metadata": "Name, labels and identity.",
    "*.items": "The objects themselves.",
    "*.key": "Label key.",
    "*.topologyKey": "Node label whose values divide the nodes into domains.",
    "*.labelSelector": _LABELS_OF_PODS,
    "*.matchLabelKeys": "Pod label keys whose values, taken from the pod itself, are added to the "
    "selector when the pod is created.",
    "*.weight": "How much the preference counts, from 1 to 100.",
    # pod affinity and anti-affinity
    "Affinity.nodeAffinity": "Rules about the labels of nodes.",
    "Affinity.podAffinity": "Rules that draw the pod to domains that hold certain pods.",
    "Affinity.podAntiAffinity": "Rules that keep the pod out of domains that hold certain pods.",
    "*.requiredDuringSchedulingRequiredDuringExecution": "Has to hold when the pod is placed, and "
    "as long as it runs: when a later change makes it false, Moorage evicts.",
    "*.requiredDuringSchedulingIgnoredDuringExecution": "Has to hold when the pod is placed.",
    "*.preferredDuringSchedulingIgnoredDuringExecution": "Weighed among the nodes that are "
    "feasible when the pod is placed.",
    "PodAffinityTerm.namespaces": "Namespaces whose pods count, together with those that "
    "`namespaceSelector` selects; both absent means the pod's own.",
    "PodAffinityTerm.namespaceSelector": "Selects namespaces by their labels; `{}` means all.",
    "PodAffinityTerm.mismatchLabelKeys": "Like `matchLabelKeys`, but the values must differ.",
    "WeightedPodAffinityTerm.podAffinityTerm": "The term that is preferred.",
    # selectors
    "LabelSelector.matchLabels": "Labels that must be there with exactly these values.",
    "LabelSelector.matchExpressions": "Requirements that all have to hold.",
    "LabelSelectorRequirement.operator": "How the label is compared with `values`.",
    "*.values": "Values to compare with; none for Exists and DoesNotExist.",
    "NodeSelector.nodeSelectorTerms": "Terms of which one has to match.",
    "NodeSelectorTerm.matchExpressions": "Requirements on the node's labels that all have to hold.",
    "NodeSelectorTerm.matchFields": "Requirements on the node's fields; only `metadata.name`.",
    "NodeSelectorRequirement.operator": "How the label is compared; Gt and Lt compare integers.",
    "PreferredSchedulingTerm.preference": "The node selector term that is preferred.",
    # topology spread
    "TopologySpreadConstraint.maxSkew": "By how many matching pods two domains may differ.",
    "TopologySpreadConstraint.whenUnsatisfiable": "Whether the constraint filters nodes or only "
    "ranks them.",
    "TopologySpreadConstraint.minDomains": "With fewer eligible domains, the smallest count is "
    "taken as zero.",
    "TopologySpreadConstraint.nodeAffinityPolicy": "Whether only nodes that the pod's node "
    "affinity lets in make up the domains.",
    "TopologySpreadConstraint.nodeTaintsPolicy": "Whether only nodes whose taints the pod "
    "tolerates make up the domains.",
    # taints and tolerations
    "Taint.key": "Name of the taint.",
    "Taint.effect": "What the taint does to pods that do not tolerate it.",
    "Taint.value": "Value of the taint.",
    "Taint.timeAdded": "When the taint was added, RFC 3339.",
    "Toleration.key": "Name of the taints tolerated; empty with Exists means all.",
    "Toleration.operator": "Equal compares `value`, Exists does not.",
    "Toleration.value": "Value of the taints tolerated.",
    "Toleration.effect": "Effect that is tolerated; empty means every effect.",
    "Toleration.tolerationSeconds": "How long NoExecute is tolerated; not read by scheduling.",
    # containers and resources
    "Container.name": "Name of the container.",
    "Container.image": "Image; a node that already holds it scores higher.",
    "Container.ports": "Ports; only those with a `hostPort` matter to scheduling.",
    "*.resources": "Requests and limits.",
    "Container.restartPolicy": "Always makes an init container a sidecar.",
    "ContainerPort.containerPort": "Port inside the container.",
    "ContainerPort.hostPort": "Port taken on the node; 0 takes none.",
    "ContainerPort.hostIP": "Address that `hostPort` is taken on; empty means all.",
    "ContainerPort.protocol": "Protocol of the port.",
    "ResourceRequirements.requests": _REQUESTS,
    "ResourceRequirements.limits": "The most that may be used, by resource name.",
    "ContainerStatus.name": "Name of the container.",
    "ContainerStatus.allocatedResources": "What the node has granted the container.",
    "ContainerImage.names": "Names by which the image is known.",
    "ContainerImage.sizeBytes": "Size of the image in bytes.",
    "PodSchedulingGate.name": "Name of the gate.",
    # pods
    "PodSpec.containers": "The pod's containers.",
    "PodSpec.initContainers": "Containers that run before the others, and sidecars.",
    "PodSpec.overhead": "What the pod itself costs beside its containers.",
    "PodSpec.nodeSelector": "Node labels that must be there; holds beside node affinity.",
    "PodSpec.affinity": "Rules about nodes and about other pods.",
    "PodSpec.tolerations": "Taints that the pod tolerates.",
    "PodSpec.topologySpreadConstraints": "How evenly pods have to be spread over domains.",
    "PodSpec.schedulingGates": "While there are any, the pod is not tried.",
    "PodSpec.schedulerName": "The scheduling profile that places the pod.",
    "PodSpec.priority": "Pods with a higher priority are tried first.",
    "PodSpec.priorityClassName": "Name of the class that gives the pod its priority.",
    "PodSpec.activeDeadlineSeconds": "How long the pod may run; read by quota scopes.",
    "ShapePoint.utilization": "Utilization in percent, from 0 to 100.",
    "ShapePoint.score": "Score at that utilization, from 0 to 10.",
    "ResourceWeight.name": "Name of the resource.",
    "ResourceWeight.weight": "How much the resource counts.",
    # explanations
    "Explanation.prefilter": "A plugin that rejected every node before they were filtered.",
    "Explanation.prefilterNodes": "The nodes that node affinity names; absent where it names none.",
    "Explanation.filters": "Plugin to node to reasons; failing entries only.",
    "Explanation.unresolvable": "Nodes that no eviction could make feasible, with the plugins.",
    "Explanation.feasible": "Nodes that passed every filter, sorted.",
    "Explanation.scores": "Plugin to node to score, 0 to 100, before its weight.",
    "Explanation.scoreSkipped": "Scoring plugins that had nothing to say of this pod.",
    "Explanation.total": "Node to weighted sum of its scores.",
    "Explanation.best": "Nodes with the largest sum.",
    "Prefilter.plugin": "The plugin.",
    "Prefilter.code": "Its verdict in Kubernetes' words.",
    "Prefilter.reasons": "Its reasons.",
    "Summary.feasibleCount": "How many nodes passed every filter.",
    "Summary.nodes": "How many nodes there are.",
    "Summary.reasons": "Plugin to reason to the number of nodes that it rejected first.",
    "*.semantics": "The preset of rules that was applied: Kubernetes or DesignDocuments.",
    # answers
    "*.revision": "The cluster's revision that the answer belongs to.",
    "*.message": "The same for people; null if there is nothing to say.",
    "*.namespace": "Namespace of the pod.",
    "*.name": "Name of the pod.",
    "ApplyAnswer.created": "Objects that are new.",
    "ApplyAnswer.changed": "Objects that were there and are different now.",
    "ApplyAnswer.unchanged": "Objects that were there just so.",
    "ApplyAnswer.deleted": "Objects that were removed.",
    "PlacementAnswer.results": "What became of each pod.",
    "PlacementAnswer.group": "Why a group was refused; null otherwise.",
    "PlacementResult.outcome": "What became of the pod.",
    "PlacementResult.nodeName": "The node; null if there is none.",
    "PlacementResult.score": "The node's weighted score.",
    "PlacementResult.explanation": "As asked for with `explain`; null for None.",
    "GroupFailure.failed": "The members that failed in the best attempt.",
    "GroupFailure.plugin": "The rule on which they failed.",
    "TopologyAnswer.key": "The topology key.",
    "TopologyAnswer.domains": "Its domains, by value.",
    "TopologyAnswer.nodesWithoutKey": "Nodes that lack the label.",
    "TopologyDomain.value": "The label's value.",
    "TopologyDomain.nodes": "The nodes that carry it.",
    # configuration
    "LimitedResource.resource": "The resource, such as `pods`.",
    "LimitedResource.matchScopes": "Each of these that a pod is in needs a quota of that scope.",
    "MatchScope.scopeName": "Name of the quota scope.",
    "MatchScope.operator": "How the scope is compared; only PriorityClass takes In and NotIn.",
    "Profile.schedulerName": "The `spec.schedulerName` that selects the profile.",
    "Profile.plugins": "Plugins switched on and off, and their weights.",
    "Profile.pluginConfig": "Arguments of plugins.",
    "Plugins.filter": "Which plugins filter.",
    "Plugins.score": "Which plugins score, and with which weights.",
    "Plugins.multiPoint": "Both at once.",
    "PluginSet.enabled": "Plugins switched on.",
    "PluginSet.disabled": "Plugins switched off; `*` means all that are on by default.",
    "PluginConfig.args": "The plugin's arguments, as in KubeSchedulerConfiguration v1.",
    "RequestedToCapacityRatio.shape": "Scores by utilization, interpolated between the points.",
}

SCHEMAS: Mapping[str, str] = {
    "Affinity": "Rules about where a pod may and should go.",
    "ContainerImage": "An image on a node.",
    "ContainerPort": "A port of a container.",
    "ContainerStatus": "What a running container was granted.",
    "LabelSelectorRequirement": "One requirement on a label.",
    "NodeAffinity": "Rules about the labels of nodes.",
    "NodeSelector": "Selects nodes: one of its terms has to match.",
    "NodeSelectorRequirement": "One requirement on a label of a node.",
    "NodeSelectorTerm": "Requirements that all have to hold.",
    "PodSchedulingGate": "Keeps the pod from being tried.",
    "PreferredSchedulingTerm": "A node selector term and how much it counts.",
    "Taint": "Keeps pods off a node that do not tolerate it.",
    "TopologySpreadConstraint": "How evenly matching pods have to be spread over domains.",
    "WeightedPodAffinityTerm": "A pod affinity term and how much it counts.",
}
"""Descriptions of whole schemas whose types have no docstring."""
