"""What `show` gives of a goal beyond what its tests at the command line hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.inspection.export import CUT_OFF, export
from goalmode.inspection.show import public, show
from goalmode.inspection.timeline import timeline
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import create_goal
from goalmode.state.store import Store
from tests.orchestrator.builders import begin
from tests.stores import Stores


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
        ("https://user:secret@h.example:8443/v1?api_key=secret#secret", "https://h.example:8443/v1"),
    ],
)
def test_an_address_is_shown_without_what_lets_somebody_in(url: str, shown: str) -> None:
    """User name, password, query and fragment stay out of sight (B117)."""
    assert public(url) == shown


def test_a_goal_made_by_a_program_gives_no_credentials_away(tmp_path: Path, new_stores: Stores) -> None:
    """Where the library stored an address with a password, no inspection repeats it."""
    settings = GoalSettings(
        model="openai:m", base_url="https://user:canary-secret@h.example/v1?key=canary-secret"
    )
    with Store(new_stores.new(tmp_path / "goals.sqlite")) as store:
        goal = create_goal(store, GoalSpec("x", str(tmp_path), settings=settings))

        assert "canary" not in repr(show(store, goal.id))


def test_a_workspace_that_is_gone_is_no_error(tmp_path: Path, new_stores: Stores) -> None:
    """The goal is shown, its deliverables as not there."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with Store(new_stores.new(tmp_path / "goals.sqlite")) as store:
        goal = create_goal(store, GoalSpec("x", str(workspace), deliverables=("a.txt",)))
        workspace.rmdir()
        [deliverable] = show(store, goal.id)["deliverables"]

    assert (deliverable["exists"], deliverable["problem"]) == (False, "the workspace itself is not there")


def test_whether_it_runs_is_found_out_once(store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends while the page is made is shown as running everywhere, or nowhere."""
    begin(store, goal)
    looks = iter([False])
    monkeypatch.setattr(store, "is_void", lambda lease: next(looks, True))
    found = show(store, goal.id)

    [wakeup] = found["wakeups"]
    assert (found["running"], found["status"], found["owner"]) == (True, "ACTIVE", wakeup["owner"])
    assert (wakeup["running"], wakeup["exit_reason"], wakeup["exit_detail"]) == (True, None, "")
    [wakeup] = show(store, goal.id)["wakeups"]
    assert (wakeup["running"], wakeup["exit_reason"]) == (False, "INTERRUPTED")


@pytest.mark.parametrize("wakeup", [None, 1])
def test_why_and_the_timeline_look_once_too(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch, wakeup: int | None
) -> None:
    """Whichever wakeup is asked about, and however often it is named."""
    begin(store, goal)
    for made in (lambda: why(store, goal.id, wakeup=wakeup), lambda: timeline(store, goal.id)):
        looks = iter([False])
        monkeypatch.setattr(store, "is_void", lambda lease, looks=looks: next(looks, True))
        found = made()

        assert (found["running"], found["status"]) == (True, "ACTIVE")
        assert "INTERRUPTED" not in str(found)
        assert "INTERRUPTED" in str(made())


def test_an_export_takes_a_wakeup_for_what_one_look_found(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran when the goal was exported, or its process had ended."""
    begin(store, goal)
    looks = iter([False])
    monkeypatch.setattr(store, "is_void", lambda lease: next(looks, True))

    for detail in (CUT_OFF, f"the process {store.owner.name} ended"):
        [exported] = export(store, goal.id)[0]["wakeups"]
        assert (exported["exit_reason"], exported["exit_detail"]) == ("INTERRUPTED", detail)
