"""Features that nodes declare, and pods from which they are inferred.

Source: `nodedeclaredfeatures` of `k8s.io/component-helpers`.
"""

from tools.oracle.generators.draws import Draws, Manifest

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK = "UserNamespacesHostNetworkSupport"
BIND_OPTIONS = "VolumeBindMountOptions"
FEATURES = (
    RESTART_ALL,
    HOST_NETWORK,
    BIND_OPTIONS,
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "SomethingOfTomorrow",
)
"""Features by name; those without a constant of their own restrict updates alone, or nothing."""


def declare(draws: Draws, manifest: Manifest) -> None:
    """Have a node declare features, or none."""
    if draws.happens(0.85):
        manifest["status"]["declaredFeatures"] = sorted(draws.some(FEATURES))


def add_need(draws: Draws, manifest: Manifest) -> None:
    """Have a pod need features, or only nearly need them."""
    spec = manifest["spec"]
    if draws.happens(0.5):
        _add_restart_rules(draws, draws.choice(spec["containers"]))
    if draws.happens(0.2):
        init: Manifest = {"name": "i", "restartPolicy": draws.choice(("Always", "OnFailure"))}
        if init["restartPolicy"] != "Always":
            _add_restart_rules(draws, init)
        spec["initContainers"] = [init]
    if draws.happens(0.2):
        options = [] if draws.happens(0.2) else ["noexec"]
        mount = {"name": "v", "mountPath": "/v", "bindMountOptions": options}
        draws.choice(spec["containers"])["volumeMounts"] = [mount]
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    if draws.happens(0.4):
        spec["hostNetwork"] = draws.happens(0.8)
        if draws.happens(0.8):
            spec["hostUsers"] = draws.happens(0.3)


def _add_restart_rules(draws: Draws, container: Manifest) -> None:
    container["restartPolicy"] = draws.choice(("Never", "OnFailure"))
    container["restartPolicyRules"] = [
        {
            "action": draws.choice(("Restart", "RestartAllContainers", "RestartAllContainers")),
            "exitCodes": {"operator": "In", "values": [42]},
        }
    ]
