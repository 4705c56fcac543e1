"""Three PostgreSQLs under Patroni, with etcd, as `deploy/patroni` configures them; HAProxy if wanted."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil

from service.server.local_server import temporary_folder
from service.store.embedded import binaries, layout, os_account
from tests.concurrency.failovers.machines import Machine, Machines, Program, machines
from tests.paths import ROOT
from tests.processes import family, signal_all
from tests.waiting import WAIT_SECONDS, once

PASSWORD = "of-these-members-alone"
DATABASE_PORT, PATRONI_PORT, ETCD_PORT, HAPROXY_PORT = 5432, 8008, 2379, 5000
DEPLOY = ROOT / "deploy" / "patroni"
ACCEPTS_WRITES = 200
DISK_BYTES = 4_000_000_000
LOOK_SECONDS = 0.5
"""Between two questions to Patroni."""
_ASK = httpx.Timeout(2.0)


@dataclass
class Member:
    """A PostgreSQL with its Patroni."""

    machine: Machine
    patroni: Program
    folder: Path

    @property
    def name(self) -> str:
        """As Patroni's other members know it."""
        return self.machine.name

    @property
    def data(self) -> Path:
        """Where its PostgreSQL has its data."""
        return self.folder / "data"

    def postgres(self) -> list[psutil.Process]:
        """Its postmaster, and the processes of that; nothing while none runs."""
        with suppress(OSError, IndexError, ValueError, psutil.NoSuchProcess):
            pid = int((self.data / "postmaster.pid").read_text("utf-8").split()[0])
            if psutil.Process(pid).name() == "postgres":
                return family(pid)
        return []


class Replicated:
    """What runs, and what can be asked of it."""

    def __init__(
        self, members: Sequence[Member], made: Machines, etcd: Program, *, through_haproxy: bool
    ) -> None:
        self.members = members
        self.home = made.home
        self.can_cut = made.can_cut
        self.etcd = etcd
        self.through_haproxy = through_haproxy
        self.patronictl: Sequence[str] = ()

    def url(self, database: str = "moorage") -> str:
        """Of whichever member accepts writes."""
        hosts = ",".join(f"{member.machine.address}:{DATABASE_PORT}" for member in self.members)
        if self.through_haproxy:
            hosts = f"{self.home}:{HAPROXY_PORT}"
        only = "target_session_attrs=read-write"
        return f"postgresql://moorage:{PASSWORD}@{hosts}/{database}?{only}"

    async def cluster(self) -> list[dict[str, Any]]:
        """What some Patroni that answers says of all members."""
        async with httpx.AsyncClient(timeout=_ASK, verify=False) as client:
            for member in self.members:
                try:
                    url = f"http://{member.machine.address}:{PATRONI_PORT}/cluster"
                    return list((await client.get(url)).json()["members"])
                except (httpx.HTTPError, ValueError, KeyError):
                    continue
        return []

    async def primary(self) -> Member | None:
        """The one whose Patroni says that it accepts writes, by its key in etcd."""
        async with httpx.AsyncClient(timeout=_ASK, verify=False) as client:
            for member in self.members:
                try:
                    url = f"http://{member.machine.address}:{PATRONI_PORT}/primary"
                    if (await client.get(url)).status_code == ACCEPTS_WRITES:
                        return member
                except httpx.HTTPError:
                    continue
        return None

    async def is_whole(self) -> bool:
        """Whether one accepts writes and the others follow it, and may confirm its commits."""
        told = await self.cluster()
        states = sorted((each.get("role", ""), each.get("state", "")) for each in told)
        lags = [each.get("lag") for each in told if each.get("role") != "leader"]
        followers = [("quorum_standby", "streaming")] * (len(self.members) - 1)
        timelines = {each.get("timeline") for each in told}
        return (
            states == [("leader", "running"), *followers]
            and len(timelines) == 1
            and all(isinstance(lag, int) and lag < 10_000_000 for lag in lags)
        )

    async def until_whole(self) -> None:
        """Wait for that.

        Raises TimeoutError, which tells what its members are instead.
        """
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not await self.is_whole():  # noqa: ASYNC110 - Patroni sets no event
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise TimeoutError(f"not whole: {await self.cluster()}") from None

    async def timeline(self) -> int:
        """It rises with each member that takes over."""
        return max((each.get("timeline") or 0 for each in await self.cluster()), default=0)

    async def execute(self, statement: str, database: str = "moorage") -> None:
        """Have the one that accepts writes execute something, as the superuser."""
        primary = await once(self.primary)
        connection = await asyncpg.connect(
            host=primary.machine.address,
            port=DATABASE_PORT,
            user="postgres",
            password=PASSWORD,
            database=database,
        )
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def switch_over(self) -> None:
        """Have another member take over in good order, as an operator does."""
        command = [*self.patronictl, "switchover", "--force", "moorage"]
        done = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = await done.communicate()
        assert done.returncode == 0, said.decode()


@asynccontextmanager
async def ballast(member: Member) -> AsyncIterator[None]:
    """Fill all that is free of a member's disk."""
    path = member.folder / "ballast"
    try:
        await asyncio.to_thread(_fill, path)
        yield
    finally:
        path.unlink()


def _fill(path: Path) -> None:
    free = os.statvfs(path.parent)
    with path.open("wb", buffering=0) as file:
        with suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - (1 << 20))
        with suppress(OSError):
            while file.write(bytes(1 << 12)):
                pass


def programs() -> Mapping[str, str]:
    """Where what is needed is found.

    Raises SystemExit, naming what is missing.
    """
    patroni = ROOT / ".ha" / "patroni" / "bin"
    found = {
        "etcd": shutil.which("etcd"),
        "haproxy": shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin"),
        "patroni": shutil.which("patroni", path=str(patroni)),
        "patronictl": shutil.which("patronictl", path=str(patroni)),
    }
    missing = [name for name, path in found.items() if path is None and name != "haproxy"]
    if missing:
        sys.exit(f"Not installed here: {', '.join(missing)}. Debian has etcd-server and haproxy.")
    return {name: path for name, path in found.items() if path is not None}


@asynccontextmanager
async def replicated(
    *, through_haproxy: bool = False, disks: bool = False
) -> AsyncIterator[Replicated]:
    """All of it, running and whole. With `disks` each member has a small disk of its own (as root)."""
    found = programs()
    async with AsyncExitStack() as stack:
        place = stack.enter_context(temporary_folder())
        made: Machines = stack.enter_context(machines())
        etcd = f"http://{made.home}:{ETCD_PORT}"
        keys = Program(None, _etcd(found["etcd"], etcd, place), {}, place / "etcd.log")
        await _start(stack, keys)
        members = [_member(machine, made, place, found) for machine in made.members]
        for member in members:
            if disks and os.geteuid() == 0:
                stack.enter_context(_disk(member.folder))
            await _start_patroni(stack, member)
        running = Replicated(members, made, keys, through_haproxy=through_haproxy)
        running.patronictl = (found["patronictl"], "-c", str(place / "db-1.yml"))
        if through_haproxy:
            words = (found["haproxy"], "-f", str(DEPLOY / "haproxy.cfg"))
            addresses = {f"DB_{i + 1}": m.machine.address for i, m in enumerate(members)}
            bind = {"BIND_TO": f"{made.home}:{HAPROXY_PORT}"}
            await _start(stack, Program(None, words, addresses | bind, place / "haproxy.log"))
        await running.until_whole()
        yield running


def _etcd(program: str, url: str, place: Path) -> tuple[str, ...]:
    peer = url.replace(str(ETCD_PORT), str(ETCD_PORT + 1))
    return (
        *(program, "--name", "one", "--data-dir", str(place / "etcd")),
        *("--listen-client-urls", url, "--advertise-client-urls", url),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"one={peer}", "--logger", "zap"),
    )


def _member(machine: Machine, made: Machines, place: Path, found: Mapping[str, str]) -> Member:
    own = place / machine.name
    own.mkdir(mode=0o700)
    owner = os_account.choose(None)
    if not owner.is_self:
        os.chown(own, owner.uid, owner.gid)
    bin_dir = Path(binaries.find(owner, layout.SYSTEM_DIR).path("postgres")).parent
    configuration = place / f"{machine.name}.yml"
    etcd = f"etcd3:\n  hosts: {made.home}:{ETCD_PORT}\n"
    configuration.write_text((DEPLOY / "patroni.yml").read_text("utf-8") + etcd, "utf-8")
    configuration.chmod(0o644)
    environment = {
        "PATH": f"{DEPLOY}:{bin_dir}:{os.environ['PATH']}",  # noqa: TID251 - of programs alone
        "HOME": str(own),
        "LC_ALL": "C",
        "MOORAGE_DATABASE_PASSWORD": PASSWORD,
        "PATRONI_NAME": machine.name,
        "PATRONI_RESTAPI_LISTEN": f"{machine.address}:{PATRONI_PORT}",
        "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{machine.address}:{PATRONI_PORT}",
        "PATRONI_POSTGRESQL_LISTEN": f"{machine.address}:{DATABASE_PORT}",
        "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{machine.address}:{DATABASE_PORT}",
        "PATRONI_POSTGRESQL_DATA_DIR": str(own / "data"),
        "PATRONI_POSTGRESQL_BIN_DIR": str(bin_dir),
        "PATRONI_POSTGRESQL_PGPASS": str(own / "pgpass"),
        "PATRONI_SUPERUSER_USERNAME": "postgres",
        "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
        "PATRONI_REPLICATION_USERNAME": "replicator",
        "PATRONI_REPLICATION_PASSWORD": PASSWORD,
    }
    words = (found["patroni"], str(configuration))
    said = place / f"{machine.name}.log"
    return Member(machine, Program(machine, words, environment, said, owner), own)


async def _start(stack: AsyncExitStack, program: Program) -> None:
    program.start()
    stack.push_async_callback(program.stop)


async def _start_patroni(stack: AsyncExitStack, member: Member) -> None:
    member.patroni.start()
    stack.push_async_callback(_stop_patroni, member)


async def _stop_patroni(member: Member) -> None:
    """And its PostgreSQL, also if the Patroni was killed."""
    signal_all(member.postgres(), signal.SIGCONT)
    await member.patroni.stop()
    signal_all(member.postgres(), signal.SIGKILL)


@contextmanager
def _disk(at: Path) -> Iterator[None]:
    """Mount a disk of so many bytes, with the owner that the folder has."""
    owner = at.stat()
    options = f"size={DISK_BYTES},mode=0700,uid={owner.st_uid},gid={owner.st_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)
