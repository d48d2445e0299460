"""A goal out of a file, into a store: everything checked first, then stored whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from goalmode.domain.goal import MAX_OBJECTIVE, Goal
from goalmode.domain.text import is_blank
from goalmode.errors import BadDocument, BadInput, StoreUnreadable
from goalmode.state import goals, transfer
from goalmode.state.store import Store
from goalmode.state.transfer_faults import faults

MAX_BYTES = 1_000_000_000
"""Of a file. A goal of 10,000 turns takes a tenth of it."""


def document_of(data: bytes, field: str) -> object:
    """The JSON value in a file.

    Raises:
        BadInput: it is none.
    """
    if len(data) > MAX_BYTES:
        raise BadInput(field, f"{len(data):,} bytes", f"a file of at most {MAX_BYTES:,} bytes")
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refused)
    except UnicodeDecodeError as error:
        raise BadInput(field, f"byte at position {error.start}", "UTF-8 text") from None
    except RecursionError:
        raise BadInput(field, "(nested too deeply)", "the JSON of an exported goal") from None
    except ValueError as error:
        raise BadInput(field, str(error), "the JSON of an exported goal") from None


def checked_document(document: object, *, workspace: str | None = None) -> dict[str, Any]:
    """The document, if a goal can be stored out of it.

    Args:
        workspace: where its files are here; None: where they were.

    Raises:
        BadDocument: it is no goal; all faults are named.
    """
    found = faults(document)
    if found:
        raise BadDocument(found)
    assert isinstance(document, dict)
    whole = document if workspace is None else {**document, "workspace": workspace}
    found = _faults(whole)
    if found:
        raise BadDocument(found)
    return whole


def import_goal(
    store: Store, document: object, *, new_id: bool = False, workspace: str | None = None
) -> Goal:
    """Store an exported goal, paused, and return it. One that was done or aborted stays so.

    Args:
        new_id: store it under another public id.
        workspace: where its files are here; None: where they were.

    Raises:
        BadDocument: it is no goal; all faults are named, and nothing is stored.
        NotAllowed: a goal of this id is in the store already; nothing is stored.
    """
    whole = checked_document(document, workspace=workspace)
    try:
        made = transfer.write(store, whole, uid=goals.new_uid() if new_id else whole["id"])
    except StoreUnreadable as error:
        raise BadDocument([str(error)]) from None
    return goals.get(store, made)


def _faults(document: dict[str, Any]) -> list[str]:
    """What a goal may not be, whatever it is stored in."""
    found = []
    if not goals.is_uid(document["id"]):
        found.append(
            f"id: {document['id'][:80]!r} is not valid: twelve letters and digits, as goalmode gives them"
        )
    if is_blank(document["objective"]) or len(document["objective"]) > MAX_OBJECTIVE:
        size = f"{len(document['objective']):,} characters"
        found.append(
            f"objective: {size!r} is not valid: a text of at most {MAX_OBJECTIVE:,} characters, not blank"
        )
    place = document["workspace"]
    if not Path(place).is_absolute():
        found.append(
            f"workspace: {place[:80]!r} is not valid: an absolute path; --workspace DIR names another one"
        )
    return found


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
