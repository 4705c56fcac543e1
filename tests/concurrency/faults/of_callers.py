"""Faults of callers, and of their connections to the servers."""

import asyncio
import random
from contextlib import suppress

import msgspec

from tests.concurrency.callers import HangUp
from tests.concurrency.faults.scene import Scene
from tests.concurrency.racing import TOKEN

AFTER_SECONDS = (0.001, 0.02)
CONNECTIONS = 200
OPEN_SECONDS = (0.2, 1.0)


async def hung_up(scene: Scene, chance: random.Random) -> bool:
    return await scene.round.place_own(HangUp(chance.uniform(*AFTER_SECONDS)))


async def cut_off(scene: Scene, chance: random.Random) -> bool:
    """A request ends in the middle of its body: the pod that it names is nobody's wish."""
    server = chance.choice(scene.servers)
    body = msgspec.json.encode({"pods": [scene.round.own_pod()]})
    head = (
        f"POST /v1/clusters/{scene.round.cluster}/placements HTTP/1.1\r\n"
        f"Host: localhost:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head.encode() + body[: chance.randrange(1, len(body))])
        await writer.drain()
        await asyncio.sleep(chance.uniform(*AFTER_SECONDS))
        writer.transport.abort()
        return True
    return False


async def flooded(scene: Scene, chance: random.Random) -> bool:
    """Many connections are opened at once, and nothing is asked."""
    server = chance.choice(scene.servers)
    several = (asyncio.open_connection("127.0.0.1", server.port) for _ in range(CONNECTIONS))
    told = await asyncio.gather(*several, return_exceptions=True)
    await asyncio.sleep(chance.uniform(*OPEN_SECONDS))
    opened = [each for each in told if not isinstance(each, BaseException)]
    for _, writer in opened:
        writer.transport.abort()
    return bool(opened)
