"""Faults of the network between a server and PostgreSQL, and of single commits on their way."""

import asyncio
import random

from tests.concurrency.faults.proxy import CommitProxy, Fault, Weather
from tests.concurrency.faults.scene import Scene

COMMIT_SECONDS_MAX = 5.0
"""How long a fault waits for a commit that it can befall."""
LASTS_SECONDS = (0.3, 3.0)
DELAY_SECONDS = (0.02, 0.1)
BYTES_PER_SECOND = (20_000, 100_000)


def at_commit(fault: Fault):
    """The next commit that is sent meets this."""

    async def befall(scene: Scene, _: random.Random) -> bool:
        proxy = scene.proxies[0]  # all share what is to come
        proxy.befell.clear()
        proxy.faults.append(fault)
        try:
            async with asyncio.timeout(COMMIT_SECONDS_MAX):
                await proxy.befell.wait()
        except TimeoutError:
            proxy.faults.clear()
            return False
        return True

    return befall


async def reset(scene: Scene, chance: random.Random) -> bool:
    return chance.choice(scene.proxies).reset() > 0


async def refused(scene: Scene, chance: random.Random) -> bool:
    proxy = chance.choice(scene.proxies)
    proxy.stop_listening()
    try:
        found = proxy.reset()
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    finally:
        await proxy.listen()
    return found > 0


async def _meanwhile(proxy: CommitProxy, chance: random.Random, weather: Weather) -> bool:
    """Have such weather for a while; whether anything passed, or tried to."""
    before = proxy.passed
    proxy.weather = weather
    try:
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    finally:
        proxy.weather = Weather()
    return proxy.passed > before


async def stalled(scene: Scene, chance: random.Random) -> bool:
    return await _meanwhile(chance.choice(scene.proxies), chance, Weather(is_silent=True))


async def blackhole(scene: Scene, chance: random.Random) -> bool:
    proxy = chance.choice(scene.proxies)
    proxy.weather.is_silent = True
    try:
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
        return proxy.reset() > 0
    finally:
        proxy.weather = Weather()


async def one_way(scene: Scene, chance: random.Random) -> bool:
    proxy = chance.choice(scene.proxies)
    passed = await _meanwhile(proxy, chance, Weather(answers_vanish=True))
    proxy.reset()
    return passed


async def delayed(scene: Scene, chance: random.Random) -> bool:
    weather = Weather(delay_seconds=chance.uniform(*DELAY_SECONDS))
    return await _meanwhile(chance.choice(scene.proxies), chance, weather)


async def narrow(scene: Scene, chance: random.Random) -> bool:
    weather = Weather(bytes_per_second=chance.uniform(*BYTES_PER_SECOND))
    return await _meanwhile(chance.choice(scene.proxies), chance, weather)


async def notifications_lost(scene: Scene, chance: random.Random) -> bool:
    weather = Weather(loses_notifications=True)
    return await _meanwhile(chance.choice(scene.proxies), chance, weather)


async def notifications_repeated(scene: Scene, chance: random.Random) -> bool:
    weather = Weather(repeats_notifications=True, delay_seconds=DELAY_SECONDS[0])
    return await _meanwhile(chance.choice(scene.proxies), chance, weather)
