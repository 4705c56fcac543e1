"""An authority that vouches for certificates of a test's own, and lasts as long as the test."""

from base64 import b64encode
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service.runtime.clock import SystemClock

_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates, which it puts into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _named(name)
        self.certificate = folder / f"{name}.crt"
        """PEM file of its own certificate."""
        self._write(self.certificate, self._subject, self._key.public_key(), is_authority=True)

    @property
    def data(self) -> str:
        """Its certificate as `caData` has it."""
        return b64encode(self.certificate.read_bytes()).decode()

    def vouch_for(self, name: str) -> tuple[Path, Path]:
        """The PEM files of a certificate for a DNS name, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        self._write(certificate, _named(name), key.public_key(), dns_name=name)
        key_file.write_bytes(
            key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return certificate, key_file

    def _write(
        self,
        file: Path,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        is_authority: bool = False,
        dns_name: str = "authority",
    ) -> None:
        now = SystemClock().now()
        own = self._key.public_key()
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns_name)]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .add_extension(_usage(is_authority=is_authority), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        file.write_bytes(made.public_bytes(_PEM))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    """What a key is for, which Python demands of authorities since 3.13."""
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
