"""Over HTTPS: the certificate that is shown, and the one that takes its place."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service.runtime.clock import SystemClock
from service.server.failures import ConfigurationError
from service.server.tcp_ports import hold_port, port_of
from service.server.tls import certificate_of
from service.settings import Settings
from tests.waiting import WAIT_SECONDS, eventually

APPLICATION = """
import sys
from pathlib import Path

def create():
    return app

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})

if __name__ == "__main__":
    from service.server import supervisor, tls
    tls.POLL_SECONDS = 0.05
    port, certificate, key = sys.argv[1:]
    supervisor.run_workers(
        "application:create", host="127.0.0.1", port=int(port), workers=1,
        certificate=tls.Certificate(Path(certificate), Path(key)),
    )
"""


def write_certificate(folder: Path, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key, put in the place of those before at a stroke each."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = SystemClock().now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    parts = {
        "tls.key": key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        "tls.crt": certificate.public_bytes(pem),
    }
    for file, content in parts.items():
        (folder / f"{file}.new").write_bytes(content)
        (folder / f"{file}.new").rename(folder / file)
    return folder / "tls.crt", folder / "tls.key"


class Server:
    """Real workers with an application that answers anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = hold_port()
        self.port = port_of(self._held)
        files = write_certificate(folder, "first")
        (folder / "application.py").write_text(APPLICATION)
        command = [sys.executable, "application.py", str(self.port), *map(str, files)]
        environment = {"PYTHONPATH": f"{Path.cwd()}:{folder}", "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(command, cwd=folder, env=environment)

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "tls.crt"))

    def connect(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS)
        try:
            return context.wrap_socket(plain, server_hostname="127.0.0.1")
        except OSError:
            plain.close()
            raise

    def shows(self, context: ssl.SSLContext) -> bool:
        """Whether it shows the certificate that a client goes by."""
        try:
            self.connect(context).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)
        self._held.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def ask(connection: ssl.SSLSocket) -> bytes:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    received = b""
    while not received.endswith(b"hello"):
        piece = connection.recv(4096)
        if not piece:
            return b""
        received += piece
    return received


def test_a_renewed_certificate_is_shown_to_whoever_connects_anew(server: Server):
    first = server.context()
    eventually(lambda: server.shows(first))
    with server.connect(first) as connection:
        assert connection.version() in {"TLSv1.2", "TLSv1.3"}
        assert ask(connection).startswith(b"HTTP/1.1 200")
    write_certificate(server.folder, "second")
    second = server.context()
    eventually(lambda: all(server.shows(second) for _ in range(20)))  # of two workers for a while
    with server.connect(second) as connection:
        assert ask(connection).startswith(b"HTTP/1.1 200")
    assert not server.shows(first)


def test_nothing_is_answered_in_clear(server: Server):
    eventually(lambda: server.shows(server.context()))
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP" not in plain.recv(4096)


def test_a_certificate_that_cannot_be_used_is_told_at_the_start(tmp_path: Path):
    certificate, key = write_certificate(tmp_path, "first")
    assert certificate_of(Settings(tls_certificate=str(certificate), tls_key=str(key)))
    assert certificate_of(Settings()) is None
    (tmp_path / "other").mkdir()
    _, other_key = write_certificate(tmp_path / "other", "other")
    for wrong in (
        Settings(tls_certificate=str(certificate)),
        Settings(tls_key=str(key)),
        Settings(tls_certificate=str(certificate), tls_key=str(other_key)),
        Settings(tls_certificate=str(tmp_path / "none"), tls_key=str(key)),
    ):
        with pytest.raises(ConfigurationError):
            certificate_of(wrong)
