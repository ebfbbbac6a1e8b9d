"""A Kerberos KDC (MIT's ``krb5kdc``) on a free loopback port, with everything it needs in one folder.

Principals: the broker ``kafka/localhost`` and ``kafka/127.0.0.1`` (keytab ``kafka``), the client ``alice`` (keytab
``alice``, password ``alice-secret``).  Names are never looked up in DNS, and requests use TCP alone.

    python -m tests.security.kdc DIR     starts one, prints its environment, and ends it at the end of the input
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers.readiness import free_base_port
from tests.requirements import PATH

__all__ = ["HOST", "PASSWORD", "REALM", "Kdc", "KdcError", "kdc", "kerberos", "program", "running_kdc"]

HOST = "127.0.0.1"
REALM = "EXAMPLE.COM"
PASSWORD = "alice-secret"
START_SECONDS = 20
PAUSE = 0.01


class KdcError(Exception):
    """A program of Kerberos failed; the text has what it said."""


def program(name: str) -> str:
    """The path of a program of Kerberos."""
    found = shutil.which(name, path=PATH)
    if found is None:
        raise KdcError(f"{name} is not installed; Debian: apt-get install krb5-kdc krb5-admin-server krb5-user")
    return found


@dataclass
class Kdc:
    """A running KDC: its folder and port, and the tools that work with it."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        """The clients' krb5.conf."""
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make MIT's library and tools use this KDC, and no ticket of the user's own."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.tickets}",
            "KRB5_KTNAME": f"FILE:{self.keytab('kafka')}",
            "KRB5_CLIENT_KTNAME": f"FILE:{self.folder}/absent.keytab",
            "KRB5RCACHENAME": "none:",
        }

    @property
    def tickets(self) -> Path:
        """The default credential cache."""
        return self.folder / "tickets"

    def keytab(self, name: str) -> Path:
        """Where the keytab of that name is."""
        return self.folder / f"{name}.keytab"

    def write_config(self, name: str = "krb5.conf", *, port: int | None = None, more: str = "") -> Path:
        """Write a krb5.conf, by default the one of this KDC."""
        path = self.folder / name
        path.write_text(
            "[libdefaults]\n"
            f"  default_realm = {REALM}\n"
            "  dns_lookup_kdc = false\n  dns_lookup_realm = false\n"
            "  dns_canonicalize_hostname = false\n  rdns = false\n  udp_preference_limit = 1\n"
            f"{more}"
            "[realms]\n"
            f"  {REALM} = {{\n    kdc = {HOST}:{port or self.port}\n  }}\n"
        )
        return path

    def requests(self, kind: str) -> list[str]:
        """The lines of the KDC's log about ``AS_REQ`` (tickets of clients) or ``TGS_REQ`` (tickets for services)."""
        return [line for line in (self.folder / "kdc.log").read_text().splitlines() if kind in line]

    def admin(self, *commands: str, must_succeed: bool = True) -> None:
        """Run commands of kadmin, such as ``addprinc -randkey bob``."""
        said = self.run("kadmin.local", text="".join(f"{command}\n" for command in commands))
        for line in said.splitlines():
            if must_succeed and ": " in line and (" while " in line or "No such" in line):
                raise KdcError(line)

    def kinit(self, *words: str, password: str | None = None) -> None:
        """Get a ticket into the default credential cache."""
        self.run("kinit", *words, text="" if password is None else f"{password}\n")

    def run(self, name: str, *words: str, text: str = "") -> str:
        """Run a program with this KDC's environment; what it said."""
        done = subprocess.run(
            [program(name), *words],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **self.environment},
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise KdcError(f"{name} {' '.join(words)} failed ({done.returncode}): {done.stdout}")
        return done.stdout

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        log = self.folder / "kdc.out"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [program("krb5kdc"), "-n"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
            )
        end = time.monotonic() + START_SECONDS
        while not self._takes_connections():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise KdcError(f"krb5kdc did not start: {log.read_text()}")
            time.sleep(PAUSE)

    def stop(self) -> None:
        """End the server."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def _takes_connections(self) -> bool:
        with socket.socket() as peer:
            return peer.connect_ex((HOST, self.port)) == 0

    def _write_files(self) -> None:
        self.write_config()
        (self.folder / "kdc.conf").write_text(
            f'[kdcdefaults]\n  kdc_listen = ""\n  kdc_tcp_listen = {HOST}:{self.port}\n'
            f"[realms]\n  {REALM} = {{\n"
            f"    database_name = {self.folder}/principal\n"
            f"    key_stash_file = {self.folder}/stash\n"
            f"    acl_file = {self.folder}/kadm5.acl\n"
            "    max_life = 10h\n    max_renewable_life = 7d\n"
            "    supported_enctypes = aes256-cts:normal aes128-cts:normal\n  }\n"
            f"[logging]\n  kdc = FILE:{self.folder}/kdc.log\n"
        )


@contextlib.contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    """A KDC with the principals named above, in an empty folder."""
    port, lock = free_base_port()
    kdc = Kdc(folder, port)
    with lock:
        kdc._write_files()
        kdc.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-secret")
        kdc.admin(
            "addprinc -randkey kafka/localhost",
            "addprinc -randkey kafka/127.0.0.1",
            f"ktadd -k {kdc.keytab('kafka')} kafka/localhost kafka/127.0.0.1",
            f"addprinc -pw {PASSWORD} alice",
            f"ktadd -norandkey -k {kdc.keytab('alice')} alice",
        )
        kdc.start()
    try:
        yield kdc
    finally:
        kdc.stop()


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """One KDC for all tests of the process."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as started:
        yield started


@pytest.fixture
def kerberos(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    """The KDC that this process uses during the test, without any ticket."""
    for variable, value in kdc.environment.items():
        monkeypatch.setenv(variable, value)
    kdc.tickets.unlink(missing_ok=True)
    return kdc


if __name__ == "__main__":
    with running_kdc(Path(sys.argv[1]).resolve()) as started:
        for variable, value in started.environment.items():
            print(f"export {variable}={value}", flush=True)
        print(f"export KDC_PID={started.process.pid}", flush=True)  # type: ignore[union-attr]
        sys.stdin.read()
