"""Commands in a sandbox: what it is made of, and how they are started in it.

They write in the workspace and in a private directory, which has their home and their temporary files. They read the
system and the tools that the user works with (`goalmode.tools.readable`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from subprocess import Popen
from typing import Any

from goalmode.domain.sandbox import SandboxMode
from goalmode.tools import bwrap
from goalmode.tools.landlock import Rules
from goalmode.tools.private import private_directory
from goalmode.tools.readable import readable, unreadable

USUAL = frozenset(
    (
        "PATH", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI",
        "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME",
        "GOROOT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
        "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "GOALMODE_IDEMPOTENCY_KEY",
    )
)  # fmt: skip
"""Variables that commands get, beside `LC_…`: what they need to find their tools, and nothing that may be a key."""

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class Confined:
    """A `Confinement` by bubblewrap or Landlock. Its directory is made for the first command, and gone after `close`.

    Args:
        read, env: beside the usual. private: what may be neither read nor written.
        path: `$PATH`. home: of the user.
    """

    def __init__(
        self,
        mode: SandboxMode,
        workspace: Path,
        *,
        network: bool,
        read: Sequence[Path],
        env: Sequence[str],
        private: Sequence[Path],
        path: str,
        home: Path,
    ) -> None:
        self.mode, self._workspace, self._network = mode, workspace, network
        self._more, self._env, self._private, self._path, self._home = read, env, private, path, home
        self._made = ExitStack()

    @property
    def leads(self) -> bool:
        return self.mode is SandboxMode.BWRAP

    def environment(self, given: Mapping[str, str]) -> Mapping[str, str]:
        kept = {n: v for n, v in given.items() if n in USUAL or n in self._env or n.startswith("LC_")}
        return {**kept, "HOME": str(self._own / "home"), "TMPDIR": str(self._own / "tmp")}

    def start(self, command: Sequence[bytes], *, lock: int | None, **options: Any) -> Popen[bytes]:
        options["pass_fds"] = () if lock is None else (lock,)
        if self.mode is SandboxMode.LANDLOCK:
            return self._rules.start(command, **options)
        # The lock is bwrap's, which lives as long as what it starts: no command gets it into its hands.
        held = [] if lock is None else [b"--sync-fd", str(lock).encode()]
        there = [b"--chdir", os.fsencode(options["cwd"]), b"--", *command]
        return Popen([*self._words, *held, *there], **options)

    def close(self) -> None:
        self._made.close()

    @cached_property
    def _own(self) -> Path:
        own = self._made.enter_context(private_directory())
        (own / "tmp").mkdir()
        _furnish(own / "home", self._home, self._read)
        return own

    @cached_property
    def _read(self) -> tuple[Path, ...]:
        return readable(self._path, self._home, self._more)

    @property
    def _hidden(self) -> tuple[Path, ...]:
        return unreadable([place for one in self._private for place in (one, one.resolve())], self._read)

    @property
    def _write(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self._own, self._workspace, self._workspace.resolve())))

    @cached_property
    def _words(self) -> list[bytes]:
        seen = bwrap.view(self._read, self._write, self._hidden, self._own / "tmp")
        return [*bwrap.start_of(network=self._network), *seen]

    @cached_property
    def _rules(self) -> Rules:
        rules, hidden = self._made.enter_context(Rules()), self._hidden
        for path in (*self._read, Path("/proc")):
            rules.read(path, hidden)
        for path in self._write:
            rules.write(path)
        for name in _DEVICES:
            rules.device(Path("/dev") / name)
        return rules


def _furnish(home: Path, real: Path, read: Sequence[Path]) -> None:
    """An empty home in which the readable tools of the real one are found where they were: as links."""
    home.mkdir()
    for path in sorted(read):
        if real in path.parents:
            link = home / path.relative_to(real)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
