"""What befalls PostgreSQL while callers place pods, and how it is made good again.

Each cause returns when placements may go on, and has been healed then. It leaves `Replicated` not
whole, which whoever asked for it waits for.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.concurrency.failovers.replicated import (
    DATABASE_PORT,
    ETCD_PORT,
    LOOK_SECONDS,
    Member,
    Replicated,
    ballast,
)
from tests.processes import Signalled, signal_all
from tests.waiting import once

HOLD_SECONDS = 10.0
"""How long a cause lasts that makes nobody take over."""
OPERATOR_SECONDS = 5.0
"""How long an operator takes who has heard the alarm."""
TAKEOVER_SECONDS_MAX = 120
Again = Callable[[], Awaitable[None]]
"""Waits until placements that were asked for from now on are acknowledged."""


@dataclass(frozen=True)
class Scene:
    """Where a cause befalls."""

    database: Replicated
    again: Again
    timeline: int
    """Of the database before."""

    async def primary(self) -> Member:
        """The member that accepts writes."""
        return await once(self.database.primary)

    async def followers(self) -> list[Member]:
        """The others."""
        primary = await self.primary()
        return [each for each in self.database.members if each is not primary]

    async def until_taken_over(self, victim: Member) -> Member:
        """Wait for whoever accepts writes next: another one, or the victim itself, started anew."""
        async with asyncio.timeout(TAKEOVER_SECONDS_MAX):
            while True:
                found = await self.database.primary()
                if found is not None and (found is not victim or await self._is_later()):
                    return found
                await asyncio.sleep(LOOK_SECONDS)

    async def _is_later(self) -> bool:
        return await self.database.timeline() > self.timeline


async def postgres_killed(scene: Scene) -> None:
    victim = await scene.primary()
    signal_all(victim.postgres()[:1], signal.SIGKILL)
    await scene.until_taken_over(victim)
    await scene.again()


async def member_killed(scene: Scene) -> None:
    """PostgreSQL and Patroni at once, as if the machine had gone."""
    victim = await scene.primary()
    victim.patroni.kill()
    signal_all(victim.postgres(), signal.SIGKILL)
    await scene.until_taken_over(victim)
    await scene.again()
    victim.patroni.start()


async def patroni_killed(scene: Scene) -> None:
    """Its PostgreSQL is left alone, and believes that it may still accept writes."""
    victim = await scene.primary()
    victim.patroni.kill()
    await scene.until_taken_over(victim)
    await scene.again()
    victim.patroni.start()


@contextmanager
def standing_still(processes: Sequence[Signalled]) -> Iterator[None]:
    """Have processes neither run nor end meanwhile."""
    signal_all(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(processes, signal.SIGCONT)


@contextmanager
def dropping(victim: Member, *rules: Sequence[str]) -> Iterator[None]:
    """Have packets to and from a machine vanish that one of the rules matches."""
    victim.machine.drop(*rules)
    try:
        yield
    finally:
        victim.machine.heal()


async def postgres_stopped(scene: Scene) -> None:
    """All its processes stand still; their connections stay, and are confirmed by the kernel."""
    victim = await scene.primary()
    with standing_still(victim.postgres()):
        await scene.until_taken_over(victim)
        await scene.again()


async def member_stopped(scene: Scene) -> None:
    """Its Patroni as well; afterwards both go on as if they still had the key in etcd."""
    victim = await scene.primary()
    assert victim.patroni.process is not None
    with standing_still([victim.patroni.process]), standing_still(victim.postgres()):
        await scene.until_taken_over(victim)
        await scene.again()


async def disk_full(scene: Scene) -> None:
    """PostgreSQL goes on, with its key, and fails all commits: an operator has to have it replaced."""
    victim = await scene.primary()
    async with ballast(victim):
        await asyncio.sleep(OPERATOR_SECONDS)
        if await scene.primary() is victim:  # it may have died of it
            await scene.database.switch_over()
        await scene.until_taken_over(victim)
        await scene.again()


async def cut_off_from_etcd(scene: Scene) -> None:
    """The other members are reached, and so are the servers."""
    victim = await scene.primary()
    home = scene.database.home
    with dropping(
        victim,
        ("OUTPUT", "-d", home, "-p", "tcp", "--dport", str(ETCD_PORT)),
        ("INPUT", "-s", home, "-p", "tcp", "--sport", str(ETCD_PORT)),
    ):
        await asyncio.sleep(3 * HOLD_SECONDS)
        await scene.again()


async def cut_off_from_all(scene: Scene) -> None:
    """Nothing reaches the machine, and nothing is refused or ended by it."""
    victim = await scene.primary()
    with dropping(victim, ("OUTPUT", "-o", "eth0"), ("INPUT", "-i", "eth0")):
        await scene.until_taken_over(victim)
        await scene.again()


async def cut_off_from_servers(scene: Scene) -> None:
    """Members and etcd see each other, so nobody takes over; it ends by itself."""
    victim = await scene.primary()
    home, port = scene.database.home, str(DATABASE_PORT)
    with dropping(
        victim,
        ("OUTPUT", "-d", home, "-p", "tcp", "--sport", port),
        ("INPUT", "-s", home, "-p", "tcp", "--dport", port),
    ):
        await asyncio.sleep(HOLD_SECONDS)
    await scene.again()


async def switched_over(scene: Scene) -> None:
    victim = await scene.primary()
    await scene.database.switch_over()
    await scene.until_taken_over(victim)
    await scene.again()


async def two_in_a_row(scene: Scene) -> None:
    """Whoever took over is killed as soon as it accepts writes."""
    victim = await scene.primary()
    signal_all(victim.postgres()[:1], signal.SIGKILL)
    second = await scene.until_taken_over(victim)
    then = replace(scene, timeline=await scene.database.timeline())
    signal_all(second.postgres()[:1], signal.SIGKILL)
    await then.until_taken_over(second)
    await scene.again()


async def a_standby_lags(scene: Scene) -> None:
    """One hears nothing for a while, then the primary dies: the other one has to take over."""
    victim = await scene.primary()
    lagging = (await scene.followers())[0]
    receivers = [each for each in lagging.postgres() if "walreceiver" in " ".join(each.cmdline())]
    with standing_still(receivers):
        await asyncio.sleep(3)
        signal_all(victim.postgres()[:1], signal.SIGKILL)
        found = await scene.until_taken_over(victim)
        assert found is not lagging, "one took over that lacked commits"
        await scene.again()


async def a_standby_stopped(scene: Scene) -> None:
    """The other one confirms, and nobody takes over."""
    with standing_still((await scene.followers())[0].postgres()):
        await asyncio.sleep(HOLD_SECONDS)
        await scene.again()


async def etcd_stopped(scene: Scene) -> None:
    """All members still see each other."""
    process = scene.database.etcd.process
    assert process is not None
    with standing_still([process]):
        await asyncio.sleep(3 * HOLD_SECONDS)
        await scene.again()


@dataclass(frozen=True)
class Cause:
    """One thing that may befall."""

    name: str
    befall: Callable[[Scene], Awaitable[None]]
    failovers: int = 1
    """How often another member has to take over."""
    cuts: bool = False
    """Whether it drops packets."""
    held: float = 0.0
    """How many seconds no placement is possible, because it lasts that long and nobody takes over."""


CAUSES = (
    Cause("PostgreSQL killed", postgres_killed),
    Cause("PostgreSQL and Patroni killed", member_killed),
    Cause("Patroni killed, PostgreSQL goes on", patroni_killed),
    Cause("PostgreSQL stopped (SIGSTOP)", postgres_stopped),
    Cause("PostgreSQL and Patroni stopped", member_stopped),
    Cause("disk full, switchover after 5 s", disk_full),
    Cause("primary cut off from etcd", cut_off_from_etcd, failovers=0, cuts=True),
    Cause("primary cut off from all", cut_off_from_all, cuts=True),
    Cause(
        "primary cut off from the servers for 10 s",
        cut_off_from_servers,
        failovers=0,
        cuts=True,
        held=HOLD_SECONDS,
    ),
    Cause("switchover", switched_over),
    Cause("two in a row killed", two_in_a_row, failovers=2),
    Cause("killed while a standby lags", a_standby_lags),
    Cause("standby stopped", a_standby_stopped, failovers=0),
    Cause("etcd stopped", etcd_stopped, failovers=0),
)


def possible(*, can_cut: bool) -> list[Cause]:
    """Those that can befall here: packets are dropped, and disks are small, only as root."""
    is_root = os.geteuid() == 0
    return [
        each
        for each in CAUSES
        if (can_cut or not each.cuts) and (is_root or each.befall is not disk_full)
    ]
