"""A document as one HTML page that needs nothing else: no script, no other file, and every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import assert_never

from goalmode.domain.text import one_line, safe
from goalmode.inspection.document import Block, Document, Heading, Item, Items, Line, Table, Text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; }
pre { border: 1px solid #8888; border-radius: 4px; overflow-x: auto; padding: .5rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #8888; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td, li, p { overflow-wrap: anywhere; }
"""


def html(document: Document, lang: str = "en") -> str:
    """The whole page; ends in one newline."""
    title = _text(document.title)
    body = "\n".join(line for block in document.blocks for line in _block(block))
    return f"""<!doctype html>
<html lang="{escape(lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"<h{level}>{_text(text)}</h{level}>"
        case Line(text):
            yield f"<p>{_text(text)}</p>"
        case Text(text):
            yield _pre(text)
        case Items(items):
            yield "<ul>"
            yield from map(_item, items)
            yield "</ul>"
        case Table(head, rows):
            yield '<div class="wide"><table>'
            heads = (f'<th scope="col">{_text(cell)}</th>' for cell in head)
            yield f"<thead><tr>{''.join(heads)}</tr></thead>"
            yield "<tbody>"
            for row in rows:
                yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
            yield "</tbody></table></div>"
        case never:
            assert_never(never)


def _item(item: Item) -> str:
    return f"<li>{_text(item.text)}{_pre(item.inside) if item.inside else ''}</li>"


def _pre(text: str) -> str:
    # A newline right behind the tag would be dropped.
    return f'<pre dir="auto">\n{escape(safe(text))}</pre>'


def _text(text: str) -> str:
    return escape(one_line(text))
