"""What a form of the pages sends: read up to a bound, strictly, and only with the key that every form holds."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from goalmode.errors import BadInput
from goalmode.web.keys import same
from goalmode.web.refusals import Refused

MAX_BYTES = 256 * 1024
"""Of a form. The longest note or answer, in characters that take nine bytes each, is well within it."""

MAX_FIELDS = 50
TYPE = "application/x-www-form-urlencoded"
CSRF = "csrf"
"""The name of the field with the key."""


async def read(request: Request, csrf: str | None) -> Mapping[str, str]:
    """The fields of a form. Lines of text end as they do everywhere else, in a newline.

    Args:
        csrf: the key that it has to hold; None for the form that signs in, which holds a key of its own.

    Raises:
        Refused: it is none of ours. BadInput: it is not UTF-8.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != TYPE:
        raise Refused(415, "refused.type")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise Refused(413, "refused.size", most=MAX_BYTES // 1024)
    fields = _fields(bytes(body))
    if csrf is not None and not same(fields.get(CSRF, ""), csrf):
        raise Refused(403, "refused.csrf")
    return fields


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except UnicodeError:
        raise BadInput("form", "", "UTF-8 text") from None
    except ValueError:
        raise Refused(400, "refused.fields") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
