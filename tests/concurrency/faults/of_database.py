"""Faults of PostgreSQL, and of what others do to it."""

import asyncio
import random
import signal
from contextlib import suppress

import asyncpg

from service.store.db.connector import data_source_name
from tests.concurrency.faults.scene import NOT_REACHED, Scene
from tests.processes import signal_all

LASTS_SECONDS = (0.3, 2.0)
CONNECTIONS_AT_ONCE = 25
CONNECTIONS_MAX = 250
TABLES = ("head", "change", '"commit"', '"object"', "idempotency", "lease")
_OWN = "FROM pg_stat_activity WHERE application_name = 'moorage'"


async def _signalled(scene: Scene, number: signal.Signals) -> bool:
    """Signal the first of its processes."""
    found = await asyncio.to_thread(scene.postgres)
    signal_all(found[:1], number)
    return bool(found)


async def killed(scene: Scene, _: random.Random) -> bool:
    return await _signalled(scene, signal.SIGKILL)


async def restarted(scene: Scene, _: random.Random) -> bool:
    return await _signalled(scene, signal.SIGINT)


async def restarted_at_once(scene: Scene, _: random.Random) -> bool:
    return await _signalled(scene, signal.SIGQUIT)


async def stood_still(scene: Scene, chance: random.Random) -> bool:
    found = await asyncio.to_thread(scene.postgres)
    signal_all(found, signal.SIGSTOP)
    try:
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    finally:
        signal_all(found, signal.SIGCONT)
    return bool(found)


async def backend_killed(scene: Scene, chance: random.Random) -> bool:
    """As a kernel without memory does: PostgreSQL ends all others, and recovers."""
    async with scene.connection() as connection:
        pids = [row["pid"] for row in await connection.fetch(f"SELECT pid {_OWN}")]
    return await _kill_one(scene, pids, chance)


async def background_killed(scene: Scene, chance: random.Random) -> bool:
    async with scene.connection() as connection:
        rows = await connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE backend_type IN"
            " ('checkpointer', 'background writer', 'walwriter', 'autovacuum launcher')"
        )
    return await _kill_one(scene, [row["pid"] for row in rows], chance)


async def _kill_one(scene: Scene, pids: list[int], chance: random.Random) -> bool:
    """Kill a process if it still is one of this PostgreSQL."""
    victim = chance.choice(pids) if pids else None
    found = [each for each in await asyncio.to_thread(scene.postgres) if each.pid == victim]
    signal_all(found, signal.SIGKILL)
    return bool(found)


async def backends_terminated(scene: Scene, _: random.Random) -> bool:
    async with scene.connection() as connection:
        return bool(await connection.fetch(f"SELECT pg_terminate_backend(pid) {_OWN}"))


async def idle_terminated(scene: Scene, _: random.Random) -> bool:
    """As a pooler or a firewall ends connections that nobody uses for a while."""
    idle = f"SELECT pg_terminate_backend(pid) {_OWN} AND state = 'idle'"
    async with scene.connection() as connection:
        return bool(await connection.fetch(idle))


async def statements_cancelled(scene: Scene, chance: random.Random) -> bool:
    found = False
    async with scene.connection() as connection:
        for _ in range(20):
            active = f"SELECT pg_cancel_backend(pid) {_OWN} AND state = 'active'"
            found |= bool(await connection.fetch(active))
            await asyncio.sleep(chance.uniform(0, 0.02))
    return found


async def _set_for_a_while(scene: Scene, chance: random.Random, **settings: str) -> bool:
    """Change settings of the whole server, and take them back, whatever happens meanwhile."""
    try:
        async with scene.connection("postgres") as connection:
            for name, value in settings.items():
                await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            await connection.execute("SELECT pg_reload_conf()")
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    except NOT_REACHED:
        return False
    finally:
        for name in settings:
            await scene.until_done(f"ALTER SYSTEM RESET {name}")
        await scene.until_done("SELECT pg_reload_conf()")
    return True


async def read_only(scene: Scene, chance: random.Random) -> bool:
    return await _set_for_a_while(scene, chance, default_transaction_read_only="on")


async def statements_short(scene: Scene, chance: random.Random) -> bool:
    """Only new connections get it, since servers set a limit of their own in those that they have."""
    return await _set_for_a_while(scene, chance, statement_timeout="3ms", lock_timeout="1ms")


async def standby_gone(scene: Scene, chance: random.Random) -> bool:
    return await _set_for_a_while(scene, chance, synchronous_standby_names="gone")


async def slow_disk(scene: Scene, chance: random.Random) -> bool:
    return await _set_for_a_while(scene, chance, commit_delay="100000", commit_siblings="0")


async def connections_refused(scene: Scene, chance: random.Random) -> bool:
    """As during maintenance: whoever is connected has to go, and nobody is let in."""
    try:
        await scene.until_done("ALTER DATABASE moorage ALLOW_CONNECTIONS false")
        await scene.until_done(f"SELECT pg_terminate_backend(pid) {_OWN}")
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    finally:
        await scene.until_done("ALTER DATABASE moorage ALLOW_CONNECTIONS true")
    return True


async def connections_exhausted(scene: Scene, chance: random.Random) -> bool:
    """Others take all connections that the servers have lost, and those that were free."""
    taken: list[asyncpg.Connection] = []

    async def take() -> None:
        taken.append(
            await asyncpg.connect(data_source_name(scene.url), database="postgres", timeout=10)
        )

    async def take_all() -> bool:
        while len(taken) < CONNECTIONS_MAX:
            several = [take() for _ in range(CONNECTIONS_AT_ONCE)]
            told = await asyncio.gather(*several, return_exceptions=True)
            if any(isinstance(each, asyncpg.TooManyConnectionsError) for each in told):
                return True
            if any(isinstance(each, BaseException) for each in told):
                return False
        return False

    try:
        async with scene.connection("postgres") as connection:
            await take_all()
            await connection.execute(f"SELECT pg_terminate_backend(pid) {_OWN}")
            is_full = await take_all()
        await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
    except NOT_REACHED:
        return False
    finally:
        for each in taken:
            each.terminate()
    return is_full


async def table_locked(scene: Scene, chance: random.Random) -> bool:
    """As by ALTER TABLE in a transaction that somebody forgot."""
    statement = f"LOCK TABLE {chance.choice(TABLES)} IN ACCESS EXCLUSIVE MODE"
    return await _held(scene, chance, statement)


async def head_locked(scene: Scene, chance: random.Random) -> bool:
    """As by a commit whose sender stands still."""
    return await _held(scene, chance, "SELECT 1 FROM head FOR UPDATE")


async def _held(scene: Scene, chance: random.Random, statement: str) -> bool:
    with suppress(*NOT_REACHED):
        async with scene.connection() as connection, connection.transaction():
            await connection.execute(statement)
            await asyncio.sleep(chance.uniform(*LASTS_SECONDS))
        return True
    return False


async def _done(scene: Scene, statement: str) -> bool:
    with suppress(*NOT_REACHED):
        async with scene.connection() as connection:
            await connection.execute(statement)
        return True
    return False


async def table_rewritten(scene: Scene, chance: random.Random) -> bool:
    """VACUUM FULL, which locks the table and puts another file in its place."""
    return await _done(scene, f"VACUUM FULL {chance.choice(TABLES)}")


async def index_rebuilt(scene: Scene, chance: random.Random) -> bool:
    return await _done(scene, f"REINDEX TABLE {chance.choice(TABLES)}")
