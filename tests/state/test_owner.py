"""Who holds a wakeup, and when somebody else may take it over."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from goalmode.state.owner import Lease, Owner, lives, process_start

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
