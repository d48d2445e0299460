"""What saving does to the work state: numbers that never change, saves that can be repeated, verification by record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.work import (
    MAX_DONE,
    MAX_FAILED,
    MAX_FOUND,
    MAX_PENDING,
    MAX_REPORTS,
    MAX_WRITTEN,
    Checkpoint,
    ItemKind,
    ItemStatus,
    Provenance,
    StatePatch,
    WorkItem,
    WorkState,
    apply,
    too_many,
    with_report,
)

DONE, PENDING = ItemKind.DONE, ItemKind.PENDING


def saved(*patches: StatePatch) -> WorkState:
    state = WorkState()
    for wakeup, patch in enumerate(patches, 1):
        state = apply(state, patch, wakeup=wakeup)
    return state


def standing(state: WorkState) -> list[tuple[str, ItemKind, ItemStatus]]:
    return [(i.label, i.kind, i.status) for i in state.items]


def test_items_are_numbered_in_the_order_they_were_first_saved() -> None:
    """Done, pending and failed items share one sequence of numbers."""
    state = saved(StatePatch(done=("a",), pending=("b",), failed={"c": "no"}), StatePatch(done=("d",)))

    assert [i.label for i in state.items] == ["W1", "W2", "W3", "W4"]
    assert [i.text for i in state.items] == ["a", "b", "c", "d"]


def test_saving_the_same_again_changes_nothing() -> None:
    """A repeated save is idempotent, wakeup number included."""
    patch = StatePatch(
        key_info="k", summary="s", next_steps=("n",), done=("a",), pending=("b",), found=("f",)
    )

    once, twice = saved(patch), saved(patch, patch)

    assert once == twice


def test_a_failed_approach_tried_again_counts_up() -> None:
    """The count and the newest outcome are kept; an empty outcome keeps the old one."""
    state = saved(
        StatePatch(failed={"x": "slow"}), StatePatch(failed={"x": "crash"}), StatePatch(failed={"x": ""})
    )

    [item] = state.items
    assert (item.count, item.evidence, item.wakeup) == (3, "crash", 3)


def test_saying_done_does_not_verify_a_pending_item() -> None:
    """A pending item stays pending until a verification with evidence is recorded."""
    state = saved(StatePatch(pending=("the tests pass",)), StatePatch(done=("the tests pass",)))

    assert standing(state) == [("W1", PENDING, ItemStatus.OPEN)]
    assert state.pending == state.items


def test_a_verified_item_does_not_become_pending_again() -> None:
    """Saving it as pending later changes nothing."""
    state = saved(
        StatePatch(pending=("t",)), StatePatch(verified={"W1": (True, "exit 0")}), StatePatch(pending=("t",))
    )

    assert standing(state) == [("W1", DONE, ItemStatus.VERIFIED)]
    assert state.items[0].evidence == "exit 0"


def test_a_failed_verification_leaves_the_item_pending_with_its_evidence() -> None:
    """It is pending again, whether it was claimed done or pending before."""
    state = saved(StatePatch(done=("t",)), StatePatch(verified={"W1": (False, "exit 1")}))

    assert [WorkItem(1, PENDING, ItemStatus.FAILED, "t", "exit 1", wakeup=2)] == list(state.items)


def test_an_approach_may_fail_and_be_done_under_one_name() -> None:
    """A failed approach and a done item of the same text are two items."""
    state = saved(StatePatch(failed={"x": "no"}), StatePatch(done=("x",)), StatePatch(failed={"x": "no"}))

    assert [i.kind for i in state.items] == [ItemKind.FAILED_APPROACH, DONE]
    assert state.items[0].count == 2


def test_verifying_an_unknown_label_changes_nothing() -> None:
    """A label that no item has is ignored; refusing it is the tool's business."""
    assert saved(StatePatch(done=("a",))) == saved(
        StatePatch(done=("a",)), StatePatch(verified={"W9": (True, "e")})
    )


def test_none_leaves_and_empty_clears_the_checkpoint() -> None:
    """None means "as it was"; an empty text is a change like any other."""
    state = saved(StatePatch(key_info="k", summary="s", next_steps=("n",)), StatePatch(summary=""))

    assert Checkpoint("k", "", ("n",), 2) == state.checkpoint


def test_an_item_is_found_by_label_or_text() -> None:
    """In either case of the label, with blanks around it."""
    state = saved(StatePatch(done=("a",), pending=("b",)))

    assert [item.number if (item := state.item(name)) else None for name in (" w1 ", "W2", "b", "c")] == [
        1,
        2,
        2,
        None,
    ]


def test_texts_that_differ_in_case_and_white_space_are_one_item() -> None:
    """It keeps the words that it was first saved in; another way to write an accent is no other text either."""
    state = saved(StatePatch(done=("Built  the Café",)), StatePatch(done=("built the\tcafe\u0301",)))

    assert [i.text for i in state.items] == ["Built  the Café"]
    assert state.item("BUILT the café") == state.items[0]


def test_what_is_claimed_done_can_await_verification_after_all() -> None:
    """Saved as pending it is pending, in the same call too: a claim of success is refused until it is verified."""
    state = saved(
        StatePatch(done=("a",)), StatePatch(pending=("A",)), StatePatch(done=("b",), pending=("b",))
    )

    assert standing(state) == [("W1", PENDING, ItemStatus.OPEN), ("W2", PENDING, ItemStatus.OPEN)]
    assert [i.wakeup for i in state.items] == [2, 3]


def test_a_name_means_an_item_of_work_before_a_failed_approach() -> None:
    """Both may have one text; only the former can be verified. A label beats a text that looks like one."""
    state = saved(StatePatch(failed={"x": "no"}), StatePatch(pending=("x", "W1")))

    assert [i.number if (i := state.item(name)) else 0 for name in ("x", "w1", "W3")] == [2, 1, 3]
    assert state.approach(" X ") == state.items[0]
    assert state.approach("y") is None


def test_files_that_were_written_are_kept_in_order_of_their_first_time() -> None:
    """The newest of them, beside those that the agent named; a file that is written again keeps its place."""
    files = tuple((f"{n}.md", "hash") for n in range(MAX_WRITTEN + 2))
    state = saved(StatePatch(found=("0.md",)), *(StatePatch(written=(f,)) for f in (*files, files[-3])))

    assert state.found == ("0.md",)
    assert state.written == tuple(path for path, _ in files[2:])


def many(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix} {n}" for n in range(count))


@pytest.mark.parametrize(
    ("patch", "limit"),
    [
        (lambda n: StatePatch(done=many("d", n)), MAX_DONE),
        (lambda n: StatePatch(pending=many("p", n)), MAX_PENDING),
        (lambda n: StatePatch(failed=dict.fromkeys(many("f", n), "")), MAX_FAILED),
        (lambda n: StatePatch(found=many("path", n)), MAX_FOUND),
    ],
    ids=["done", "pending", "failed", "found"],
)
def test_a_goal_has_room_for_so_many_of_each(patch: Callable[[int], StatePatch], limit: int) -> None:
    """As many as the bound and no more; what is there already may always be saved again."""
    full = saved(patch(limit))

    assert too_many(WorkState(), full) == ""
    assert str(limit) in too_many(full, apply(full, patch(limit + 1), wakeup=2))
    assert too_many(full, apply(full, patch(limit), wakeup=2)) == ""


def test_items_that_were_verified_make_room_for_pending_ones_within_a_bound() -> None:
    """What is pending and done together is bounded too, since a verified item is done."""
    state = saved(StatePatch(done=many("d", MAX_DONE), pending=many("p", MAX_PENDING)))
    passed = {i.label: (True, "e") for i in state.pending}
    verified = apply(state, StatePatch(verified=passed), wakeup=2)

    assert "pending" in too_many(verified, apply(verified, StatePatch(pending=("q",)), wakeup=3))


def test_reports_do_not_count_towards_the_bounds_and_the_oldest_go() -> None:
    """They are the host's. Numbers are not used again, and the agent's items stay."""
    state = saved(StatePatch(done=many("d", MAX_DONE)))
    for number in range(MAX_REPORTS + 3):
        state = with_report(state, "verify", f"round {number}", wakeup=2)

    reports = [i for i in state.items if i.provenance is Provenance.HOST]
    assert [reports[0].text, reports[-1].label] == [
        "report of verify, wakeup 2: round 3",
        f"W{MAX_DONE + MAX_REPORTS + 3}",
    ]
    assert len(reports) == MAX_REPORTS
    assert len(state.items) == MAX_DONE + MAX_REPORTS
    assert too_many(state, state) == ""
    assert apply(state, StatePatch(pending=("q",)), wakeup=3).items[-1].number == reports[-1].number + 1


_texts = st.lists(st.sampled_from("abcdef"), max_size=4).map(tuple)
_patches = st.builds(
    StatePatch,
    key_info=st.none() | st.sampled_from("kl"),
    done=_texts,
    pending=_texts,
    failed=st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", "why"]), max_size=3),
    found=_texts,
    verified=st.dictionaries(
        st.sampled_from(["W1", "W2", "W3", "W9"]), st.tuples(st.booleans(), st.just("e")), max_size=2
    ),
)


@given(st.lists(_patches, max_size=8))
def test_numbers_and_texts_are_stable(patches: list[StatePatch]) -> None:
    """Whatever is saved, an item keeps its number and text, numbers have no gaps, and nothing disappears."""
    state = WorkState()
    for wakeup, patch in enumerate(patches, 1):
        after = apply(state, patch, wakeup=wakeup)
        assert [(i.number, i.text) for i in state.items] == [
            (i.number, i.text) for i in after.items[: len(state.items)]
        ]
        assert set(state.found) <= set(after.found)
        state = after

    assert list(range(1, len(state.items) + 1)) == [i.number for i in state.items]
    assert {i for i in state.items if i.status is ItemStatus.VERIFIED} == {
        i for i in state.items if i.kind is DONE and i.evidence == "e"
    }


@given(st.lists(_patches, max_size=4), _texts, _texts)
def test_saves_of_done_and_pending_are_idempotent(
    patches: list[StatePatch], done: tuple[str, ...], pending: tuple[str, ...]
) -> None:
    """In any state, the second of two equal saves changes nothing."""
    patch = StatePatch(key_info="k", done=done, pending=pending)
    once = apply(saved(*patches), patch, wakeup=8)

    assert once == apply(once, patch, wakeup=9)


def verified_on(*files: tuple[str, str]) -> WorkState:
    patch = StatePatch(verified={"W1": (True, "exit 0")}, rests_on={"W1": files})
    return saved(StatePatch(pending=("a",)), patch, StatePatch(done=("b",)))


def test_a_verified_item_is_seen_stale_when_a_file_it_rests_on_changed() -> None:
    """It is pending again, with the files that changed; what is stored stays as it was."""
    state = verified_on(("x", "1"), ("y", "2"), ("z", "3"))
    now = {"x": "1", "y": "9"}

    seen = state.as_seen(now.get)

    assert standing(seen) == [("W1", PENDING, ItemStatus.STALE), ("W2", DONE, ItemStatus.CLAIMED)]
    assert seen.items[0].changed == ("y", "z")
    assert seen.pending == seen.items[:1]
    assert standing(state)[0] == ("W1", DONE, ItemStatus.VERIFIED)
    assert state.as_seen({"x": "1", "y": "2", "z": "3"}.get) == state


def test_nothing_but_a_verification_can_go_stale() -> None:
    """Files are asked for only where an item rests on them."""

    def never(path: str) -> None:
        raise AssertionError(path)

    unverified = saved(
        StatePatch(pending=("a",)), StatePatch(verified={"W1": (False, "e")}, rests_on={"W1": (("x", "1"),)})
    )

    assert unverified.items[0].rests_on == ()
    assert unverified.as_seen(never) == unverified
    assert verified_on().as_seen(never) == verified_on()


def test_a_new_verification_rests_on_what_it_looked_at() -> None:
    """The files of the one before count no more."""
    again = StatePatch(verified={"W1": (True, "again")}, rests_on={"W1": (("x", "2"),)})

    state = apply(verified_on(("x", "1"), ("y", "1")), again, wakeup=9)

    assert state.items[0].rests_on == (("x", "2"),)
