"""Text from a model, before it becomes bytes: characters that arrived as two halves are joined, half ones refused."""

from __future__ import annotations

from goalmode.errors import ToolError


def well_formed(text: str, what: str) -> str:
    """`text` with surrogate pairs joined. `what` names it in the error.

    Raises:
        ToolError: half a pair is left. It is refused rather than replaced: nothing the model wrote is altered.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise ToolError(f"{what} holds half a surrogate pair near character {error.start // 2}") from error
