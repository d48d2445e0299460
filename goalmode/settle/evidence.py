"""What no command can show: the claim must cite a call that the host recorded, or a file that is there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goalmode.domain.calls import CallOutcome
from goalmode.domain.snapshot import Action
from goalmode.tools.named import is_file, words
from goalmode.tools.paths import Workspace

_SHORTEST = 3
"""Characters; a shorter subject or id of a call would be found in any text."""


def cites(evidence: Sequence[str], actions: Sequence[Action], workspace: Workspace) -> bool:
    """Whether any of the evidence names a successful recorded call (its id or its subject) or an existing file."""
    text = "\n".join(evidence)
    return any(_names(text, action) for action in actions) or any(is_file(workspace, w) for w in words(text))


def _names(text: str, action: Action) -> bool:
    if action.outcome is not CallOutcome.SUCCESS:
        return False
    return any(
        len(name) >= _SHORTEST and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.ASCII)
        for name in (action.call_id, action.brief.strip())
    )
