"""Opening the pages in the user's browser, without the token on a command line that everybody can read."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Browse = Callable[[str], bool]

_LEADS_TO = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>goalmode</title>
<p><a href="{url}">goalmode</a></p>
"""


@contextmanager
def door(url: str, browse: Browse = webbrowser.open) -> Iterator[Callable[[], bool]]:
    """Something to call that opens `url` in a browser; False where there is none.

    The address goes through a file that only this user can read, and that is gone when the block ends.
    """
    with tempfile.TemporaryDirectory(prefix="goalmode-web-") as directory:
        file = Path(directory) / "open.html"
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as page:
            page.write(_LEADS_TO.format(url=html.escape(url)))
        yield lambda: browse(file.as_uri())
