"""A plain server's port behind TLS, in threads, with the certificate for "localhost" in ``data``."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

__all__ = ["CERTIFICATE", "TlsFront"]

DATA = Path(__file__).parent / "data"
CERTIFICATE = str(DATA / "localhost.pem")
TURN_SECONDS = 0.05
PATIENCE = 30.0


class TlsFront:
    """``with TlsFront(port) as tls_port``."""

    def __init__(
        self, port: int, certificate: trustme.LeafCert | None = None, *, client_ca: trustme.CA | None = None
    ) -> None:
        """With ``client_ca`` clients must show a certificate of that CA."""
        self._port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if certificate is None:
            self._context.load_cert_chain(CERTIFICATE, str(DATA / "localhost-key.pem"))
        else:
            certificate.configure_cert(self._context)
        if client_ca is not None:
            client_ca.configure_trust(self._context)
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TURN_SECONDS)

    def use(self, certificate: trustme.LeafCert) -> None:
        """Show this certificate to clients that connect from now on."""
        certificate.configure_cert(self._context)

    def __enter__(self) -> int:
        self._start(self._accept)
        port: int = self._listener.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, run: object, *args: object) -> None:
        thread = threading.Thread(target=run, args=args)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_over.is_set():
            try:
                accepted, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._start(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        accepted.settimeout(PATIENCE)
        try:
            outer = self._context.wrap_socket(accepted, server_side=True)
        except OSError:  # the client does not like the certificate
            accepted.close()
            return
        with outer, socket.create_connection(("127.0.0.1", self._port)) as inner:
            try:
                while not self._is_over.is_set() and self._relay(outer, inner):
                    pass
            except OSError:
                return

    def _relay(self, outer: ssl.SSLSocket, inner: socket.socket) -> bool:
        """One turn; False when either side has ended."""
        wait = 0.0 if outer.pending() else TURN_SECONDS
        readable, _, _ = select.select([outer, inner], [], [], wait)
        for source, target in ((outer, inner), (inner, outer)):
            if source in readable or (source is outer and outer.pending()):
                data = source.recv(65_536)
                if not data:
                    return False
                target.sendall(data)
        return True


def client_files(folder: Path, ca: trustme.CA, passphrase: str) -> dict[str, str]:
    """Settings of a session with files for TLS: the CA, and a client certificate whose key has a passphrase."""
    issued = ca.issue_cert("client")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    files = {
        "tls_ca_file": ca.cert_pem.bytes(),
        "tls_certificate_file": b"".join(each.bytes() for each in issued.cert_chain_pems),
        "tls_key_file": locked,
    }
    for setting, content in files.items():
        (folder / f"{setting}.pem").write_bytes(content)
    return {setting: str(folder / f"{setting}.pem") for setting in files}
