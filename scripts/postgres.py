"""A private PostgreSQL for the tests: `python scripts/postgres.py COMMAND…` runs a command beside one.

A cluster of its own on a free port of loopback, in a temporary directory, with a password of its own; stopped and
removed at the end, also if the command fails. GOALMODE_TEST_STORE tells the command where it is. PostgreSQL refuses
to run as root, so root lends it the user `postgres`. Where there is none, root installs Debian's package.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

VERSIONS = Path("/usr/lib/postgresql")
USER = "postgres"
"""Who runs the server where we are root, and its superuser's name in any case."""

PORTS = range(20_000, 32_000)

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # The data are gone in a minute: nothing needs to survive the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "4GB",
    "log_min_messages": "fatal",
}


@dataclass(frozen=True)
class Cluster:
    """A running server. `url` is its superuser's way in, to the database `postgres`."""

    home: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        self._control("start")

    def stop(self, how: str = "fast") -> None:
        """`fast` ends every session; `immediate` is a crash."""
        self._control("stop", "-m", how)

    def _control(self, *words: str) -> None:
        log = self.home / "log"
        options = ["-o", f"-p {self.port} -k {self.home}"] if words[0] == "start" else []
        _as_server("pg_ctl", "-s", "-w", "-D", str(self.home / "data"), "-l", str(log), *options, *words)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A new server, for as long as the block runs."""
    home = Path(tempfile.mkdtemp(prefix="goalmode-postgres-"))
    try:
        if os.getuid() == 0:
            shutil.chown(home, USER, USER)
        made = Cluster(home, _free_port(), secrets.token_urlsafe(16))
        _initialise(made)
        made.start()
        try:
            yield made
        finally:
            made.stop("immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def install() -> None:
    """Bring the server where it is missing, if we may."""
    if any(VERSIONS.glob("*/bin/initdb")):
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"there is no PostgreSQL in {VERSIONS}; install Debian's package postgresql")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", "postgresql"]):
        subprocess.run(["apt-get", *words], env=quiet, stdout=subprocess.DEVNULL, check=True)


def _initialise(made: Cluster) -> None:
    secret = made.home / "password"
    secret.write_text(made.password)
    secret.chmod(0o644)  # In a directory that only the server's user can enter.
    data = made.home / "data"
    _as_server(
        "initdb", "-D", str(data), "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
        "--auth=md5", f"--pwfile={secret}",  # Thousands of connections: what is stronger takes its time.
    )  # fmt: skip
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())


def _as_server(program: str, *arguments: str) -> None:
    newest = max(VERSIONS.glob(f"*/bin/{program}"), key=lambda path: float(path.parent.parent.name))
    lend = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
    done = subprocess.run(
        [*lend, str(newest), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} failed: {done.stderr}")


def _free_port() -> int:
    """Below those that systems give to whoever asks for any: free still when the server begins, and begins again."""
    while True:
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def main(command: Sequence[str]) -> int:
    install()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that the server is stopped then, too.
    with cluster() as server:
        environment = {**os.environ, "GOALMODE_TEST_STORE": server.url}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
