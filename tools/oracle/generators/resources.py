"""Resource requests: of containers, init containers, sidecars, whole pods, and their overhead."""

from typing import NamedTuple

from tools.oracle.generators import quantities
from tools.oracle.generators.draws import Draws, Manifest, without_absent

MIB = 1024**2
CPU = (0, 100, 250, 500, 1000, 1500, 2000, 4000)
MEMORY = tuple(size * MIB for size in (0, 64, 128, 200, 256, 512, 1024, 2048, 4096))
EPHEMERAL = tuple(size * MIB for size in (0, 100, 1024, 10240))
EXTENDED = ("example.com/fpga", "nvidia.com/gpu")
HUGE = "hugepages-2Mi"


class Spelling(NamedTuple):
    """How amounts are written: always alike, or in every way."""

    is_free: bool = False

    def cpu(self, draws: Draws, milli: int) -> str:
        """Spell cpu, in milli."""
        return quantities.cpu(draws, milli) if self.is_free else f"{milli}m"

    def size(self, draws: Draws, count: int) -> str:
        """Spell bytes or pieces."""
        return quantities.size(draws, count) if self.is_free else str(count)


PLAIN, FREE = Spelling(), Spelling(is_free=True)


def requests(draws: Draws, spelling: Spelling = PLAIN, share: float = 0.6) -> Manifest:
    """Draw the requests of a container: cpu, memory, and ephemeral storage."""
    drawn = {}
    if draws.happens(share):
        drawn["cpu"] = spelling.cpu(draws, draws.choice(CPU))
    if draws.happens(share):
        drawn["memory"] = spelling.size(draws, draws.choice(MEMORY))
    if draws.happens(share / 6):
        drawn["ephemeral-storage"] = spelling.size(draws, draws.choice(EPHEMERAL))
    return drawn


def strict(draws: Draws, spelling: Spelling = PLAIN) -> Manifest:
    """Draw requests for resources that have to be equal to their limits."""
    drawn = {}
    if draws.happens(0.5):
        drawn[draws.choice(EXTENDED)] = spelling.size(draws, draws.choice((0, 1, 2, 4)))
    if draws.happens(0.3):
        drawn[HUGE] = spelling.size(draws, draws.choice((2, 4, 64)) * MIB)
    return drawn


def is_strict(resource: str) -> bool:
    """Return whether requests for a resource have to be equal to their limits."""
    return resource in EXTENDED or resource == HUGE


def resources(
    draws: Draws, spelling: Spelling = PLAIN, share: float = 0.6, strict_share: float = 0.1
) -> Manifest:
    """Draw the `resources` of a container, or an empty map."""
    limited = strict(draws, spelling) if draws.happens(strict_share) else {}
    requested = requests(draws, spelling, share) | limited
    if HUGE in limited and not {"cpu", "memory"} & requested.keys():
        requested["cpu"] = spelling.cpu(draws, 100)
    return without_absent({"limits": limited, "requests": requested})


def container(draws: Draws, name: str, spelling: Spelling = PLAIN, share: float = 0.6) -> Manifest:
    """Draw a container with requests."""
    return {"name": name} | without_absent({"resources": resources(draws, spelling, share)})


def init_containers(draws: Draws, spelling: Spelling = PLAIN) -> list[Manifest]:
    """Draw a few init containers, some of them sidecars."""
    drawn = [container(draws, f"i{number}", spelling) for number in range(draws.randint(1, 3))]
    for init in drawn:
        if draws.happens(0.5):
            init["restartPolicy"] = "Always"
    return drawn


def overhead(draws: Draws, spelling: Spelling = PLAIN) -> Manifest:
    """Draw the overhead of a pod."""
    return {
        "cpu": spelling.cpu(draws, draws.choice((0, 50, 100, 500))),
        "memory": spelling.size(draws, draws.choice((0, 64, 120)) * MIB),
    }


def pod_level(draws: Draws, spelling: Spelling = PLAIN) -> Manifest:
    """Draw the `resources` of a whole pod, at least as large as its containers' can be."""
    large = {"cpu": 1000 * draws.choice((12, 16)), "memory": draws.choice((32, 64)) * 1024 * MIB}
    drawn = {}
    if draws.happens(0.6):
        drawn["cpu"] = spelling.cpu(draws, large["cpu"])
    if draws.happens(0.6):
        drawn["memory"] = spelling.size(draws, large["memory"])
    limits = {name: value for name, value in drawn.items() if draws.happens(0.3)}
    return without_absent({"limits": limits, "requests": drawn})


def drop_huge_pages(spec: Manifest) -> None:
    """Take huge pages from the containers of a pod, as they would give it limits as a whole.

    kube-apiserver fills these in, from 1.37 on at another time than other defaults.
    """
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        for amounts in container.get("resources", {}).values():
            amounts.pop(HUGE, None)
