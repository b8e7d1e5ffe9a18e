"""TLS in front of a registry, as a proxy gives it: some clients keep secrets for https only."""

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PIECE = 65_536


class TlsProxy:
    """An address under https, and the certificate that vouches for it."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "certificate.pem"
        key = write_certificate(self.certificate)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextmanager
    def leading_to(self, url: str) -> Iterator[None]:
        """Pass on what comes, to the server at this address, until the block ends."""
        host, _, port = url.partition("://")[2].partition(":")
        accepting = threading.Thread(target=self._accept, args=(host, int(port)), daemon=True)
        accepting.start()
        try:
            yield
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            accepting.join()

    def _accept(self, host: str, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain, host, port), daemon=True).start()

    def _serve(self, plain: socket.socket, host: str, port: int) -> None:
        with (
            contextlib.suppress(OSError),
            self._context.wrap_socket(plain, server_side=True) as outside,
            socket.create_connection((host, port)) as inside,
        ):
            back = threading.Thread(target=_copy, args=(inside, outside), daemon=True)
            back.start()
            _copy(outside, inside)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def write_certificate(path: Path) -> Path:
    """A certificate of this machine that vouches for itself; where its key is."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a registry in a test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = path.with_name("key.pem")
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return secret
