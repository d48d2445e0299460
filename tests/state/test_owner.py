"""Who holds a wakeup, and when somebody else may take it over."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from goalmode.errors import BadInput
from goalmode.state.owner import LEASE_MS, Lease, Owner, chosen_lease, lives, process_start

HERE = Owner.current()


def test_a_living_owner_is_not_void_within_its_lease() -> None:
    """At the lease's last millisecond it still holds."""
    assert not Lease(HERE, until_ms=1_000).is_void(1_000, HERE)
    assert Lease(HERE, until_ms=1_000).is_void(1_001, HERE)


def test_a_number_that_a_later_process_got_is_a_dead_owner() -> None:
    """B50: the pid lives, but its process started at another time."""
    recycled = replace(HERE, pid_start="1")

    assert not lives(recycled)
    assert Lease(recycled, until_ms=10**12).is_void(0, HERE)


def test_a_dead_owner_of_this_host_is_void_at_once() -> None:
    """No lease is waited out."""
    process = subprocess.Popen(["true"])
    process.wait()

    assert Lease(replace(HERE, pid=process.pid), until_ms=10**12).is_void(0, HERE)


def test_a_zombie_is_dead() -> None:
    """It keeps its number until somebody reaps it, but runs no more code."""
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert process_start(process.pid) is None
    assert process_start(process.pid, zombie=True) is not None
    process.wait()


def test_another_boot_is_void() -> None:
    """Its lease was counted on a clock that is gone."""
    assert Lease(replace(HERE, boot_id="another"), until_ms=10**12).is_void(0, HERE)


def test_a_process_of_another_container_is_waited_out() -> None:
    """Its pid is of another numbering, though boot and host label are the same."""
    contained = replace(HERE, pid=2**22 + 1, pid_start="1@4026531999")

    assert not Lease(contained, until_ms=1_000).is_void(1_000, HERE)
    assert Lease(contained, until_ms=1_000).is_void(1_001, HERE)


def test_over_a_server_another_boot_is_another_machine() -> None:
    """The lease is counted on the server's clock: it holds whatever boot its owner runs on."""
    elsewhere = replace(HERE, boot_id="another", pid=2**22 + 1)

    assert not Lease(elsewhere, until_ms=1_000).is_void(1_000, HERE, served=True)
    assert Lease(elsewhere, until_ms=1_000).is_void(1_001, HERE, served=True)
    assert Lease(replace(HERE, pid=2**22 + 1), until_ms=1_000).is_void(1_000, HERE, served=True)


def test_over_a_server_an_unknown_boot_is_waited_out() -> None:
    """Where the platform tells no boot, two machines look the same: no pid is believed."""
    nameless = replace(HERE, boot_id="")
    dead = replace(nameless, pid=2**22 + 1)

    assert not Lease(dead, until_ms=1_000).is_void(1_000, nameless, served=True)
    assert Lease(dead, until_ms=1_000).is_void(1_001, nameless, served=True)


def test_a_dead_process_of_another_host_is_waited_out() -> None:
    """Its pid means nothing here; only the lease counts."""
    elsewhere = replace(HERE, host_label="elsewhere", pid=2**22 + 1)

    assert not Lease(elsewhere, until_ms=1_000).is_void(1_000, HERE)
    assert Lease(elsewhere, until_ms=1_000).is_void(1_001, HERE)


def test_the_host_label_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`GOALMODE_HOST_LABEL` says which workspaces this process can reach."""
    monkeypatch.setenv("GOALMODE_HOST_LABEL", "build-7")

    assert (Owner.current().host_label, Owner.current().name) == ("build-7", f"build-7:{os.getpid()}")
    assert Owner.current("given").host_label == "given"


@pytest.mark.parametrize(
    ("seconds", "length"), [("", LEASE_MS), ("1", 1_000), ("2.5", 2_500), ("86400", 86_400_000)]
)
def test_the_length_of_a_lease_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, seconds: str, length: int
) -> None:
    """`GOALMODE_LEASE` holds seconds; without it a lease is a minute."""
    monkeypatch.setenv("GOALMODE_LEASE", seconds)

    assert chosen_lease() == length


@pytest.mark.parametrize("text", ["0.9", "86401", "nan", "-5", "a minute"])
def test_a_length_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """One line names the variable, its value and what would be right."""
    monkeypatch.setenv("GOALMODE_LEASE", text)

    with pytest.raises(BadInput, match=f"GOALMODE_LEASE: '{text}' is not valid: seconds, from 1 to 86400"):
        chosen_lease()
