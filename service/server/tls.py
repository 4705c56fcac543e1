"""The certificate of a server: its check at the start, and its renewal while the server runs."""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from service.runtime.certificate_files import CertificateFiles
from service.server.failures import ConfigurationError
from service.settings import Settings

POLL_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Certificate(NamedTuple):
    """The PEM files of a certificate chain and its private key."""

    certificate: Path
    key: Path

    def problem(self) -> str | None:
        """Return why the certificate cannot be used, or None if it can."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:  # An SSLError is an OSError, too.
            return f"{self.certificate} and {self.key} are no certificate and its key: {error}"
        return None


def certificate_of(settings: Settings) -> Certificate | None:
    """Return the certificate in the settings, or None if the server speaks plain HTTP.

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


def watch_certificate(
    certificate: Certificate, renewed: Callable[[], None], stop: threading.Event
) -> threading.Thread:
    """Start a thread that calls `renewed` whenever usable new files appear, until `stop` is set."""

    def poll() -> None:
        files = CertificateFiles(certificate)
        _have_changed(files)
        while not stop.wait(POLL_SECONDS):
            if not _have_changed(files):
                continue
            if (problem := certificate.problem()) is not None:  # a file may be only partly written
                _log.warning("The certificate stays the one before: %s", problem)
                continue
            _log.warning("The certificate was renewed.")
            renewed()

    thread = threading.Thread(target=poll, name="certificate", daemon=True)
    thread.start()
    return thread


def _have_changed(files: CertificateFiles) -> bool:
    try:
        return files.have_changed()
    except OSError:  # a file is missing, perhaps until its replacement is renamed
        return False
