"""Machines on this machine: addresses, programs that run there, and cuts in the network between them.

As root each machine is a network namespace with an address of its own, at a bridge, so that packets
between two of them can be dropped without anybody being told. Otherwise it is one of the addresses
of the loopback interface, between which nothing can be cut.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from service.store.embedded.os_account import OsAccount

BRIDGE = "moorage-ha"
HOME_ADDRESS = "10.231.7.1"
"""Where everything runs that is no machine of the database: servers, etcd, callers."""


@dataclass(frozen=True)
class Machine:
    """A place where programs run."""

    name: str
    address: str
    namespace: str | None = None

    def command(self, *words: str) -> tuple[str, ...]:
        """What runs these words on this machine."""
        inside = () if self.namespace is None else ("ip", "netns", "exec", self.namespace)
        return (*inside, *words)

    def drop(self, *matches: Sequence[str]) -> None:
        """Drop all packets of this machine that match, in both directions named, until `heal`."""
        for match in matches:
            _run(*self.command("iptables", "-A", *match, "-j", "DROP"))

    def heal(self) -> None:
        """Let all packets pass again."""
        _run(*self.command("iptables", "-F"))


@dataclass(frozen=True)
class Machines:
    """One for everything else, and three for members of the database."""

    home: str
    members: tuple[Machine, ...]

    @property
    def can_cut(self) -> bool:
        """Whether packets between them can be dropped."""
        return all(member.namespace is not None for member in self.members)


@contextmanager
def machines(count: int = 3) -> Iterator[Machines]:
    """Start machines, as separate as they may be made here."""
    if os.geteuid() != 0:
        yield Machines(
            "127.0.8.10", tuple(Machine(f"db-{i}", f"127.0.8.{i}") for i in range(1, count + 1))
        )
        return
    with ExitStack() as stack:
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        stack.callback(_run, "ip", "link", "delete", BRIDGE)
        _run("ip", "address", "add", f"{HOME_ADDRESS}/24", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        yield Machines(HOME_ADDRESS, tuple(_namespace(i, stack) for i in range(1, count + 1)))


def _namespace(number: int, stack: ExitStack) -> Machine:
    namespace, link = f"{BRIDGE}-{number}", f"{BRIDGE}{number}"
    address = f"10.231.7.1{number}"
    _run("ip", "netns", "add", namespace)
    stack.callback(_run, "ip", "netns", "delete", namespace)
    inside = ("ip", "-n", namespace)
    _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    _run("ip", "link", "set", link, "master", BRIDGE, "up")
    _run(*inside, "address", "add", f"{address}/24", "dev", "eth0")
    _run(*inside, "link", "set", "eth0", "up")
    _run(*inside, "link", "set", "lo", "up")
    return Machine(f"db-{number}", address, namespace)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


@dataclass
class Program:
    """A program that is started, and started again, on a machine; what it says is in a file."""

    machine: Machine | None
    words: tuple[str, ...]
    environment: Mapping[str, str]
    said: Path
    account: OsAccount | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, as its account."""
        words = self.words
        if self.account is not None and not self.account.is_self:
            identity = (f"--reuid={self.account.uid}", f"--regid={self.account.gid}")
            words = ("setpriv", *identity, "--clear-groups", *words)
        if self.machine is not None:
            words = self.machine.command(*words)
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                words,
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ["PATH"], **self.environment},  # noqa: TID251 - of programs alone
                start_new_session=True,
            )

    def kill(self) -> None:
        """`kill -9` of this program alone, not of what it has started."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def stop(self, seconds: float = 20) -> None:
        """End it and, if it does not end, kill it."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            self.kill()
