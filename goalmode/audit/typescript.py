"""TypeScript and JavaScript, by tree-sitter (the extra `audit`).

tree-sitter reads on behind what it does not understand, so a file that does not parse whole is looked at as far as it
does.
"""

from __future__ import annotations

from functools import cache

import tree_sitter as ts
import tree_sitter_javascript
import tree_sitter_typescript

from goalmode.audit.ecmascript import line_of, nodes, text_of
from goalmode.audit.tree import IGNORE, Comment, NotParsed, Source

GRAMMARS = {
    ".ts": tree_sitter_typescript.language_typescript,
    ".mts": tree_sitter_typescript.language_typescript,
    ".cts": tree_sitter_typescript.language_typescript,
    ".tsx": tree_sitter_typescript.language_tsx,
    ".js": tree_sitter_javascript.language,
    ".jsx": tree_sitter_javascript.language,
    ".mjs": tree_sitter_javascript.language,
    ".cjs": tree_sitter_javascript.language,
}
"""By the end of a file's name."""


@cache
def _parser(ending: str) -> ts.Parser:
    return ts.Parser(ts.Language(GRAMMARS[ending]()))


def parse(text: str, ending: str) -> Source:
    """Raises NotParsed."""
    root = _parser(ending).parse(text.encode()).root_node
    try:
        return Source(
            nodes(root.named_children),
            _comments(root) if IGNORE in text else (),
            _broken(root) if root.has_error else None,
        )
    except RecursionError:
        raise NotParsed("nested too deeply") from None


def _comments(root: ts.Node) -> tuple[Comment, ...]:
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if node.type == "comment":
            found.append(Comment(line_of(node), text_of(node)))
        stack.extend(node.named_children)
    return tuple(sorted(found, key=lambda comment: comment.line))


def _broken(root: ts.Node) -> int:
    """The first line at which something does not parse."""
    node = root
    while node.type != "ERROR" and (inner := next((n for n in node.children if n.has_error), None)):
        node = inner
    return line_of(node)
