"""The certificate of a server: whether it can be used, and when it was renewed."""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from service.cli.errors import WrongUsage
from service.settings import Settings

LOOK_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Certificate(NamedTuple):
    """A certificate with the chain that signs it, and its key; both are PEM files."""

    certificate: Path
    key: Path

    def problem(self) -> str | None:
        """Say why the certificate cannot be used; None if it can."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:  # An SSLError is an OSError, too.
            return f"{self.certificate} and {self.key} are no certificate and its key: {error}"
        return None

    def written_at(self) -> tuple[int, int]:
        """Return when the two files were written, in nanoseconds; zeros if one is missing."""
        try:
            return self.certificate.stat().st_mtime_ns, self.key.stat().st_mtime_ns
        except OSError:
            return 0, 0


def certificate_of(settings: Settings) -> Certificate | None:
    """Return the certificate that the settings name; None if the server speaks plain HTTP.

    Raises:
        WrongUsage: only one of the two files is named, or they cannot be used.
    """
    if settings.tls_certificate is None and settings.tls_key is None:
        return None
    if settings.tls_certificate is None or settings.tls_key is None:
        raise WrongUsage("--tls-certificate and --tls-key have to be given together.")
    certificate = Certificate(Path(settings.tls_certificate), Path(settings.tls_key))
    if (problem := certificate.problem()) is not None:
        raise WrongUsage(problem)
    return certificate


def watch(
    certificate: Certificate, renewed: Callable[[], None], stop: threading.Event
) -> threading.Thread:
    """In a thread, call `renewed` each time usable new files were written, until `stop` is set."""

    def look() -> None:
        known = certificate.written_at()
        while not stop.wait(LOOK_SECONDS):
            written_at = certificate.written_at()
            if written_at in (known, (0, 0)):
                continue
            known = written_at
            if (problem := certificate.problem()) is not None:  # perhaps only half of it is written
                _log.warning("The certificate stays the one before: %s", problem)
                continue
            _log.warning("The certificate was renewed.")
            renewed()

    thread = threading.Thread(target=look, name="certificate", daemon=True)
    thread.start()
    return thread
