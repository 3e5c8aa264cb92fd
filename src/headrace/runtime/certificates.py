"""TLS certificates: made in memory for one local cluster, or as files for a cluster that you start yourself.

Keys are on the curve P-256, which takes about a millisecond; RSA keys take up to a second.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import BadFile, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

ROLES = ("scheduler", "worker", "client")
"""A client's certificate cannot be used to listen; the other two can be used for both."""
_LOCAL_DAYS = 3650
"""Certificates of a local cluster exist only in memory, and must outlast any run."""
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True, repr=False)
class Pair:
    """A certificate and its private key, as PEM text. Neither is shown in a traceback."""

    certificate: str
    key: str


class Authority:
    """A certificate authority; its key is in memory only, unless `pair` is written to a file.

    >>> authority = Authority("lab")
    >>> authority.issue("worker").certificate.splitlines()[0]
    '-----BEGIN CERTIFICATE-----'
    """

    def __init__(self, name: str, days: int = _LOCAL_DAYS) -> None:
        from cryptography import x509

        self._key = _new_key()
        self._days = days
        self._name = _common_name(f"{name} authority")
        usage = _usage(key_cert_sign=True, crl_sign=True)
        self._certificate = self._signed(
            self._name, self._key, (x509.BasicConstraints(ca=True, path_length=0), usage)
        )
        self.pair = Pair(_pem(self._certificate), _key_pem(self._key))

    def issue(self, role: str) -> Pair:
        """A certificate that this authority signed, for `scheduler`, `worker` or `client`."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose

        key = _new_key()
        purposes = [Purpose.CLIENT_AUTH] if role == "client" else [Purpose.SERVER_AUTH, Purpose.CLIENT_AUTH]
        extensions = (
            x509.BasicConstraints(ca=False, path_length=None),
            _usage(digital_signature=True),
            x509.ExtendedKeyUsage(purposes),
            x509.SubjectAlternativeName([x509.DNSName(f"headrace-{role}")]),
        )
        certificate = self._signed(_common_name(f"headrace {role}"), key, extensions)
        return Pair(_pem(certificate), _key_pem(key))

    def _signed(self, name: Any, key: EllipticCurvePrivateKey, extensions: tuple[Any, ...]) -> Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = datetime.datetime.now(datetime.UTC)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + datetime.timedelta(days=self._days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(authority, critical=False)
        )
        for extension in extensions:
            critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256())


def local_material() -> dict[str, str]:
    """The TLS settings of one local cluster, by the parameter names of `distributed.Security`.

    All processes of the cluster belong to this user and share one certificate; the authority's key is forgotten.
    """
    authority = Authority("headrace local")
    pair = authority.issue("scheduler")
    material = {"tls_ca_file": authority.pair.certificate}
    for role in ROLES:
        material |= {f"tls_{role}_cert": pair.certificate, f"tls_{role}_key": pair.key}
    return material


def role_material() -> dict[str, str]:
    """As `local_material`, with a certificate for each role: workers on other machines get theirs alone."""
    authority = Authority("headrace ssh")
    material = {"tls_ca_file": authority.pair.certificate}
    for role in ROLES:
        pair = authority.issue(role)
        material |= {f"tls_{role}_cert": pair.certificate, f"tls_{role}_key": pair.key}
    return material


def material_files(folder: Path) -> dict[str, Path]:
    """As `role_material`, the files that `write_certificates` wrote; an error if one is missing."""
    files = {"tls_ca_file": folder / "ca.pem"}
    for role in ROLES:
        files |= {f"tls_{role}_cert": folder / f"{role}.pem", f"tls_{role}_key": folder / f"{role}-key.pem"}
    for path in files.values():
        if not path.is_file():
            raise UsageError(
                f"there is no file {path.name!r}",
                where=str(folder),
                hint="name a folder that `headrace certificates FOLDER` made",
            )
    return {name: path.absolute() for name, path in files.items()}


def read_material(folder: Path) -> dict[str, str]:
    """As `role_material`, from files."""
    try:
        return {name: path.read_text("ascii") for name, path in material_files(folder).items()}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"certificates cannot be read: {error}", where=str(folder), hint="make new ones"
        ) from None


def material_of(role: str, material: Mapping[str, str]) -> dict[str, str]:
    """What a process of one role needs."""
    return {name: material[name] for name in ("tls_ca_file", f"tls_{role}_cert", f"tls_{role}_key")}


def write_certificates(folder: str | Path, *, days: int = 365, name: str = "headrace") -> list[Path]:
    """Create an authority, and a certificate for each role, as files that only this user can read.

    Returns the files, in the order in which they were written. Nothing is overwritten.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     files = write_certificates(Path(parent) / "tls")
    ...     [file.name for file in files][:4], f"{files[1].stat().st_mode & 0o777:o}"
    (['ca.pem', 'ca-key.pem', 'scheduler.pem', 'scheduler-key.pem'], '600')
    """
    if not 1 <= days <= 36500:
        raise UsageError(f"days is {days}", hint="give 1 to 36500 days")
    authority = Authority(name, days)
    contents: dict[str, str] = {}
    for role in ("ca", *ROLES):
        pair = authority.pair if role == "ca" else authority.issue(role)
        contents |= {f"{role}.pem": pair.certificate, f"{role}-key.pem": pair.key}
    target = Path(folder)
    taken = [target / file for file in contents if (target / file).exists()]
    if taken:
        raise UsageError(
            f"{str(taken[0])!r} exists", hint="name a new folder, or remove the old certificates"
        )
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, content in contents.items():
            _write_private(target / file, content)
    except OSError as error:
        raise BadFile(
            f"certificates cannot be written: {error.strerror}", where=str(target), hint="name another folder"
        ) from None
    return [target / file for file in contents]


def _write_private(path: Path, content: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="ascii") as opened:
        opened.write(content)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _common_name(text: str) -> Any:
    from cryptography import x509

    try:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
    except ValueError:
        raise UsageError(f"the name is {text!r}", hint="give a name of 1 to 50 characters") from None


def _usage(**purposes: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(**dict.fromkeys(_USAGES, False) | purposes)


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _key_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
