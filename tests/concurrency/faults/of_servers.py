"""Faults of servers and of their processes."""

import asyncio
import os
import random
import signal
from contextlib import suppress

import psutil

from tests.concurrency.faults.scene import Scene, fork_servers, workers

STAND_STILL_SECONDS = (0.1, 3.0)
STUTTER_SECONDS = 0.05
STUTTERS = 20
DESCRIPTORS_SECONDS = (0.5, 2.0)


async def _worker(scene: Scene, chance: random.Random) -> psutil.Process | None:
    return next(iter(await asyncio.to_thread(workers, chance.choice(scene.servers))), None)


async def worker_killed(scene: Scene, chance: random.Random) -> bool:
    worker = await _worker(scene, chance)
    return worker is not None and _signalled(worker, signal.SIGKILL)


async def all_workers_killed(scene: Scene, _: random.Random) -> bool:
    found = [each for server in scene.servers for each in await asyncio.to_thread(workers, server)]
    return sum(_signalled(each, signal.SIGKILL) for each in found) > 1


async def worker_ended(scene: Scene, chance: random.Random) -> bool:
    worker = await _worker(scene, chance)
    return worker is not None and _signalled(worker, signal.SIGTERM)


async def worker_stood_still(scene: Scene, chance: random.Random) -> bool:
    worker = await _worker(scene, chance)
    return worker is not None and await _stand_still(worker, chance.uniform(*STAND_STILL_SECONDS))


async def worker_stuttered(scene: Scene, chance: random.Random) -> bool:
    worker = await _worker(scene, chance)
    if worker is None:
        return False
    for _ in range(STUTTERS):
        if not await _stand_still(worker, chance.uniform(0, 2 * STUTTER_SECONDS)):
            return False
        await asyncio.sleep(STUTTER_SECONDS)
    return True


async def supervisor_stood_still(scene: Scene, chance: random.Random) -> bool:
    """Its worker dies meanwhile, which it learns only afterwards."""
    server = chance.choice(scene.servers)
    worker = next(iter(await asyncio.to_thread(workers, server)), None)
    if worker is None or server.process is None:
        return False
    supervisor = psutil.Process(server.process.pid)
    supervisor.send_signal(signal.SIGSTOP)
    try:
        killed = _signalled(worker, signal.SIGKILL)
        await asyncio.sleep(chance.uniform(*STAND_STILL_SECONDS))
    finally:
        supervisor.send_signal(signal.SIGCONT)
    return killed


async def fork_server_killed(scene: Scene, chance: random.Random) -> bool:
    found = await asyncio.to_thread(lambda: [*fork_servers(chance.choice(scene.servers))])
    return sum(_signalled(each, signal.SIGKILL) for each in found) > 0


async def out_of_descriptors(scene: Scene, chance: random.Random) -> bool:
    """Connections that are lost cannot be opened anew, and nobody is let in."""
    worker = await _worker(scene, chance)
    if worker is None:
        return False
    try:
        before = worker.rlimit(psutil.RLIMIT_NOFILE)
        worker.rlimit(psutil.RLIMIT_NOFILE, (worker.num_fds() + 1, before[1]))
    except (psutil.Error, OSError, ValueError):
        return False
    try:
        for proxy in scene.proxies:
            proxy.reset()
        await asyncio.sleep(chance.uniform(*DESCRIPTORS_SECONDS))
    finally:
        with suppress(psutil.Error, OSError):
            worker.rlimit(psutil.RLIMIT_NOFILE, before)
    return True


async def server_killed(scene: Scene, chance: random.Random) -> bool:
    server = chance.choice(scene.servers)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(chance.uniform(0, 1))
    await scene.start(server)
    return True


async def server_stopped(scene: Scene, chance: random.Random) -> bool:
    server = chance.choice(scene.servers)
    code = await asyncio.to_thread(server.stop)
    assert code == 0, f"A16: {server.url} was told to end, and ended with {code}"
    await scene.start(server)
    return True


async def server_told_twice(scene: Scene, chance: random.Random) -> bool:
    """SIGTERM, and SIGKILL of the supervisor while its worker answers the rest."""
    server = chance.choice(scene.servers)
    if server.process is None:
        return False
    os.kill(server.process.pid, signal.SIGTERM)
    await asyncio.sleep(chance.uniform(0, 0.3))
    await asyncio.to_thread(server.kill)
    await scene.start(server)
    return True


def _signalled(process: psutil.Process, number: signal.Signals) -> bool:
    try:
        process.send_signal(number)
    except psutil.Error:
        return False
    return True


async def _stand_still(process: psutil.Process, seconds: float) -> bool:
    try:
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGCONT)
    except psutil.Error:
        return False
    return True
