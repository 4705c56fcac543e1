"""Stories over HTTP: objects are stored, pods are asked about or placed, answers are read."""

from typing import Any

import msgspec

from tests.api.harness import CLUSTER, Harness
from tests.builders import Manifest, NamespaceBuilder, NodeBuilder, ObjectBuilder, PodBuilder
from tests.kept_kinds import path_of as path_of_kept


class Story(msgspec.Struct, frozen=True):
    """A cluster of a running application, and what tests ask of it."""

    harness: Harness

    async def put(self, *things: Manifest) -> None:
        """Store objects; pods that are `on` a node are placed there, as observed."""
        for thing in things:
            await self.harness.put(path_of(thing), thing)

    async def configure(self, **settings: Any) -> None:
        """Settings that are not named get their defaults back."""
        await self.harness.configure(**settings)

    async def read(self, thing: Manifest) -> Manifest:
        answer = await self.harness.client.get(f"{CLUSTER}/{path_of(thing)}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def delete(self, thing: Manifest) -> None:
        answer = await self.harness.client.delete(f"{CLUSTER}/{path_of(thing)}")
        assert answer.status_code == 200, answer.text

    async def explain(self, pod: PodBuilder) -> dict[str, Any]:
        """The full explanation of a placement that is only tried."""
        answer = await self.harness.place(pod, dryRun=True, explain="Full")
        return dict(answer["results"][0]["explanation"])

    async def feasible(self, pod: PodBuilder) -> list[str]:
        """Names of the nodes that all filters let in."""
        return list((await self.explain(pod))["feasible"])

    async def place(self, *pods: PodBuilder, **options: Any) -> list[str | None]:
        """Where each of the pods was placed; None if it was not."""
        answer = await self.harness.place(*pods, **options)
        return [result["nodeName"] for result in answer["results"]]

    async def wrong_fields(self, thing: Manifest) -> dict[str, str]:
        """Field to message, of an object that has to be refused."""
        answer = await self.harness.client.put(f"{CLUSTER}/{path_of(thing)}", json=thing)
        assert answer.status_code == 422, answer.text
        return {error["field"]: error["message"] for error in answer.json()["errors"]}


async def tell(harness: Harness, *things: Manifest, **settings: Any) -> Story:
    """A story that begins with these objects, under these settings."""
    story = Story(harness)
    if settings:
        await story.configure(**settings)
    await story.put(*things)
    return story


def path_of(thing: Manifest) -> str:
    """Where an object is, below its cluster."""
    metadata = thing["metadata"]
    match thing:
        case NodeBuilder():
            return f"nodes/{metadata['name']}"
        case NamespaceBuilder():
            return f"namespaces/{metadata['name']}"
        case ObjectBuilder():
            return path_of_kept(thing["kind"], metadata.get("namespace", ""), metadata["name"])
        case _:
            return f"namespaces/{metadata['namespace']}/pods/{metadata['name']}"
