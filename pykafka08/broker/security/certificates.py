"""A certificate authority for one embedded cluster, which lives as long as the cluster."""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pykafka08.errors import ConfigError

__all__ = ["Certificates"]

DAYS = 7
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """A CA, the brokers' certificate, and a client certificate for each user that asks; PEM files in a private folder.

    The brokers' certificate is for loopback and for ``hosts``.  Needs the extra ``keystores`` (cryptography).
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise ConfigError(
                "TLS of the embedded broker needs the extra 'keystores': pip install 'pykafka08[keystores]'"
            ) from None
        self._x509, self._ec = x509, ec
        self._hosts = tuple(dict.fromkeys((*LOOPBACK, *hosts)))
        self._folder = Path(tempfile.mkdtemp(prefix="pykafka08-tls-"))
        try:
            self._ca_key = ec.generate_private_key(ec.SECP256R1())
            self._ca_name = self._name("pykafka08 embedded CA")
            self._ca = self._signed(self._ca_name, self._ca_key, is_ca=True)
            self.ca_file = str(self._folder / "ca.pem")
            Path(self.ca_file).write_bytes(self._pem(self._ca))
            self._server_file = self._issued("broker", is_server=True)
        except BaseException:
            self.close()
            raise
        self._client_files: dict[str, str] = {}

    def server_context(self) -> ssl.SSLContext:
        """A context with the brokers' certificate, which trusts client certificates of the CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._server_file)
        context.load_verify_locations(self.ca_file)
        return context

    def client_file(self, user: str) -> str:
        """PEM file with a client certificate for ``CN=user`` and its private key."""
        if user not in self._client_files:
            self._client_files[user] = self._issued(user, is_server=False, number=len(self._client_files))
        return self._client_files[user]

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _issued(self, name: str, *, is_server: bool, number: int = 0) -> str:
        from cryptography.hazmat.primitives import serialization

        key = self._ec.generate_private_key(self._ec.SECP256R1())
        certificate = self._signed(self._name(name), key, is_server=is_server)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = self._folder / ("broker.pem" if is_server else f"client-{number}.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret + self._pem(certificate) + self._pem(self._ca))
        return str(path)

    def _name(self, text: str) -> Any:
        return self._x509.Name([self._x509.NameAttribute(self._x509.NameOID.COMMON_NAME, text)])

    def _signed(self, subject: Any, key: Any, *, is_ca: bool = False, is_server: bool = False) -> Any:
        from cryptography.hazmat.primitives import hashes

        x509 = self._x509
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=DAYS))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()), critical=False
            )
        )
        if is_ca:
            usage = x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        else:
            oids = x509.ExtendedKeyUsageOID
            purposes = [oids.SERVER_AUTH] if is_server else [oids.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        if is_server:
            names = [self._general_name(host) for host in self._hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._ca_key, hashes.SHA256())

    def _general_name(self, host: str) -> Any:
        try:
            return self._x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            return self._x509.DNSName(host)

    def _pem(self, certificate: Any) -> bytes:
        from cryptography.hazmat.primitives import serialization

        encoded: bytes = certificate.public_bytes(serialization.Encoding.PEM)
        return encoded
