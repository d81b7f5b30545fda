"""A certificate authority for one rehearsal: nothing of it outlives the folder it stands in."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID: Final = timedelta(days=2)
"""Longer than any rehearsal runs."""

LOOPBACK: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates and keeps them in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rehearsal")])
        own = _builder(self._name, self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.pair = self._write("ca", own.sign(self._key, hashes.SHA256()), self._key)

    def server(self, name: str, hosts: tuple[str, ...] = ()) -> Pair:
        """For a program that listens on the loopback, under further names as well."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in (*LOOPBACK, *hosts)])
        return self._sign(name, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), alternatives)

    def client(self, name: str, groups: tuple[str, ...] = ()) -> Pair:
        """For a user called `name` in `groups`, as Kubernetes reads them."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        return self._sign(name.replace(":", "-"), x509.Name(attributes))

    def key_pair(self, name: str) -> Pair:
        """A key and its public half, for what signs without a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = self._folder / f"{name}.pub"
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return Pair(public, self._write_key(name, key))

    def _sign(self, file: str, subject: x509.Name, alternatives: x509.SubjectAlternativeName | None = None) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(subject, self._name, key.public_key()).add_extension(usage, critical=False)
        if alternatives:
            builder = builder.add_extension(alternatives, critical=False)
        return self._write(file, builder.sign(self._key, hashes.SHA256()), key)

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
        file = self._folder / f"{name}.crt"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return Pair(file, self._write_key(name, key))

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        file = self._folder / f"{name}.key"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALID)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
