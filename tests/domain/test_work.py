"""What saving does to the work state: numbers that never change, saves that can be repeated, verification by record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.work import (
    Checkpoint,
    ItemKind,
    ItemStatus,
    StatePatch,
    WorkItem,
    WorkState,
    apply,
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
