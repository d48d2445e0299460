"""In which sandbox shell commands and checks run: the choice, and what it leaves open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from goalmode.domain.goal import GoalSettings
from goalmode.domain.sandbox import AUTO, CHOICES, SandboxMode, SandboxSettings
from goalmode.errors import BadInput
from goalmode.tools import bwrap, landlock
from goalmode.tools.confined import Confined
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.readable import holds


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What the commands of one goal run in.

    Attributes:
        network: False: there is none, not even this machine's own.
        read: what may be read beside what `goalmode.tools.readable` finds.
        env: variables that commands get beside the usual ones.
        private: what no command may read or write: the store, the configuration.
        path: `$PATH`. home: of the user.
    """

    workspace: Path
    mode: SandboxMode = SandboxMode.NONE
    network: bool = True
    read: tuple[Path, ...] = ()
    env: tuple[str, ...] = ()
    private: tuple[Path, ...] = ()
    path: str = os.defpath
    home: Path = Path("/root")

    def keeping(self, *private: Path) -> Sandbox:
        """The same, with these files, too, out of its commands' reach.

        Raises:
            BadInput: that cannot be: the workspace holds them, or the workspace or what is to be read is the home.
        """
        kept = replace(self, private=tuple(dict.fromkeys((*self.private, *map(from_here, private)))))
        if self.mode is SandboxMode.NONE:
            return kept
        for one in self.read:
            if holds(one, self.home):
                expected = "a place below the home directory, or outside of it: keys lie in it"
                raise BadInput("sandbox.read", str(one), expected)
        root = self.workspace.resolve()
        if holds(root, self.home):
            raise _open_to_all(self.workspace, "is the home directory or above it, and keys lie there")
        for one in kept.private:
            if _lies_in(one, root):
                raise _open_to_all(self.workspace, f"holds {one.name}, which no command may reach")
        return kept

    def keeping_store(self, file: Path | None) -> Sandbox:
        """The store, and what lies beside it: its locks and its backups. None: it is on a server.

        Raises:
            BadInput: see `keeping`.
        """
        return self if file is None else self.keeping(file, from_here(file).parent)

    def confinement(self) -> Confinement:
        """What commands are started in; it is to be closed."""
        if self.mode is SandboxMode.NONE:
            return FREE
        return Confined(
            self.mode,
            self.workspace,
            network=self.network,
            read=self.read,
            env=self.env,
            private=self.private,
            path=self.path,
            home=self.home,
        )


def sandbox_for(
    workspace: Path, settings: GoalSettings, configured: SandboxSettings, environ: Mapping[str, str]
) -> Sandbox:
    """The sandbox of a goal on this machine, now.

    Raises:
        BadInput: what the goal, or the configuration, asks for does not work here, or cannot protect anything.
    """
    made = Sandbox(
        workspace,
        choose(settings.sandbox or configured.mode, network=settings.network),
        settings.network,
        tuple(map(Path, configured.read)),
        configured.env,
        path=environ.get("PATH", os.defpath),
        home=Path(environ.get("HOME") or Path.home()),
    )
    return made.keeping(*map(Path, configured.private))


def choose(wanted: str, *, network: bool = True) -> SandboxMode:
    """The mode for a word of `CHOICES`; `auto` is the strongest that works here, now.

    Raises:
        BadInput: there is no such word, what it names does not work here, or it cannot keep the network away.
    """
    if wanted not in CHOICES:
        raise BadInput("sandbox", wanted, " or ".join(CHOICES))
    if not network and wanted not in (AUTO, SandboxMode.BWRAP):
        raise BadInput(
            "sandbox", wanted, "bwrap or auto with --no-network: only bwrap can keep the network away"
        )
    if wanted == SandboxMode.NONE:
        return SandboxMode.NONE
    if wanted == SandboxMode.LANDLOCK:
        return _working(SandboxMode.LANDLOCK, landlock.problem())
    problem = bwrap.problem(network=network)
    if wanted == SandboxMode.BWRAP or not network:
        return _working(SandboxMode.BWRAP, problem)
    if not problem:
        return SandboxMode.BWRAP
    return SandboxMode.NONE if landlock.problem() else SandboxMode.LANDLOCK


def _working(mode: SandboxMode, problem: str) -> SandboxMode:
    if problem:
        raise BadInput("sandbox", mode.value, f"one that works here: {problem}")
    return mode


def gaps(mode: SandboxMode, *, network: bool = True) -> tuple[str, ...]:
    """What a sandbox leaves within reach of its commands on this machine; all for none."""
    if mode is SandboxMode.NONE:
        return ("all that you can do",)
    reached = ["the network, with what listens on this machine"] if network else []
    if mode is SandboxMode.LANDLOCK:
        reached += ["sockets of other programs in the file system", "modes and times of your files"]
        if landlock.abi() < landlock.SCOPED_ABI:
            reached.append("signals to your other processes, up to Linux 6.11")
    return tuple(reached)


def from_here(path: Path) -> Path:
    """Absolute. A `..` at its beginning is taken from the working directory, in whose name there is no link: what lies
    beside a workspace does not lie in it because it is named from there."""
    here, rest = Path.cwd(), path.parts
    while rest[:1] == ("..",):
        here, rest = here.parent, rest[1:]
    return here.joinpath(*rest)


def _lies_in(path: Path, root: Path) -> bool:
    """By its own way or by the name that it is given: who can exchange a link on that leads it elsewhere."""
    return root in path.resolve().parents or any(above.resolve() == root for above in path.parents)


def _open_to_all(workspace: Path, what: str) -> BadInput:
    expected = f"a directory that commands can be kept in, for it {what}; or take --sandbox none"
    return BadInput("workspace", str(workspace), expected)
