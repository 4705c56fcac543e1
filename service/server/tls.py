"""The certificate of a server: whether it can be used, and when it was renewed."""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from service.runtime.certificate_files import CertificateFiles
from service.server.failures import ConfigurationError
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


def certificate_of(settings: Settings) -> Certificate | None:
    """Return the certificate that the settings name; None if the server speaks plain HTTP.

    Raises:
        ConfigurationError: only one of the two files is named, or they cannot be used.
    """
    if settings.tls_certificate is None and settings.tls_key is None:
        return None
    if settings.tls_certificate is None or settings.tls_key is None:
        raise ConfigurationError("--tls-certificate and --tls-key have to be given together.")
    certificate = Certificate(Path(settings.tls_certificate), Path(settings.tls_key))
    if (problem := certificate.problem()) is not None:
        raise ConfigurationError(problem)
    return certificate


def watch(
    certificate: Certificate, renewed: Callable[[], None], stop: threading.Event
) -> threading.Thread:
    """In a thread, call `renewed` each time usable new files were written, until `stop` is set."""

    def look() -> None:
        files = CertificateFiles(certificate)
        _were_written(files)
        while not stop.wait(LOOK_SECONDS):
            if not _were_written(files):
                continue
            if (problem := certificate.problem()) is not None:  # perhaps only half of it is written
                _log.warning("The certificate stays the one before: %s", problem)
                continue
            _log.warning("The certificate was renewed.")
            renewed()

    thread = threading.Thread(target=look, name="certificate", daemon=True)
    thread.start()
    return thread


def _were_written(files: CertificateFiles) -> bool:
    try:
        return files.were_written()
    except OSError:  # one is missing, perhaps until it is renamed
        return False
