"""What code reads out of a model's reply: whether it asks for tools, and why it ended."""

from __future__ import annotations

from goalmode.audit.names import Names
from goalmode.audit.tree import Assign, Call, Const, Function, Name, Node, Op, walk
from goalmode.audit.words import ABSENT, COUNTS, TOOL_WORDS, Reason, reason, says_reason, says_tools, words

_HAVING = frozenset(["len", "bool", "list", "tuple", "Boolean", "isArray", "has"])
_PICKING = frozenset(["any", "next", "some", "filter", "find", "findLast"])
_DOING = frozenset(
    [
        "execute",
        "run",
        "process",
        "handle",
        "dispatch",
        "call",
        "invoke",
        "perform",
        "do",
        "apply",
        "record",
        "parse",
    ]
)


def presence(node: Node, names: Names, depth: int = 3) -> int:
    """1 where the node is true if there are tool calls, -1 where it is true if there are none, 0 where neither."""
    match node:
        case Name(path=path):
            return _named(node, path, names, depth)
        case Call(callee=Name(path=(*owner, name), base=base), args=args):
            return _called(node, owner, name, base, args, names, depth)
        case Op(op="==" | "!=" | "<" | "<=" | ">" | ">=" as op, operands=(left, right)):
            return _compared(op, left, right, names, depth)
        case Op(op="in", operands=(left, right)):
            if isinstance(left, Const) and isinstance(left.value, str) and left.value in TOOL_WORDS:
                return 1
            return int(reads_reason(left, names) and _has_tool_word(right))
        case Op(op="??" | "or", operands=(left, Const() | Op(op="[]"))):
            return presence(left, names, depth)
        case Op(op="not", operands=(inner,)):
            return -presence(inner, names, depth)
        case Op(op="ListComp" | "GeneratorExp" | "SetComp"):
            return int(_picks_tools(node, names, depth))
        case Assign(value=value):
            return presence(value, names, depth)
    return 0


def _named(node: Name, path: tuple[str, ...], names: Names, depth: int) -> int:
    *owner, last = path or ("",)
    if last in COUNTS and (owner or node.base is not None):
        return presence(
            Name(node.line, tuple(owner), node.base) if owner else node.base or node, names, depth
        )
    if says_tools(last):
        return -1 if words(last)[0] in ABSENT else 1
    if node.base is not None and not path:
        return presence(node.base, names, depth)
    if not depth:
        return 0
    value = names.value(node)
    if value is not None and (found := presence(value, names, depth - 1)):
        return found
    return int(any(presence(part, names, depth - 1) > 0 for part in names.added(node)))


def _called(
    node: Call,
    owner: list[str],
    name: str,
    base: Node | None,
    args: tuple[Node, ...],
    names: Names,
    depth: int,
) -> int:
    if says_tools(name):
        if set(words(name)) & _DOING:
            return 0
        return -1 if words(name)[0] in ABSENT else 1
    within = [*args] if base is None else [base, *args]
    if name in _PICKING:
        return int(any(_picks_tools(part, names, depth) for part in args))
    if name not in _HAVING:
        return 0
    if owner:
        within.append(Name(node.line, tuple(owner), base))
    return int(any(presence(part, names, depth) > 0 or _picks_tools(part, names, depth) for part in within))


def _picks_tools(node: Node, names: Names, depth: int) -> bool:
    """Whether a predicate, or a comprehension, is true for tool calls only."""
    match node:
        case Function(body=body):
            return any(is_about_tools(part, names, 0) for part in body)
        case Op(op="ListComp" | "GeneratorExp" | "SetComp", operands=(element, *rest)):
            tests = [test for one in rest for test in one.parts[2:]]
            if any(is_about_tools(part, names, 0) for part in (element, *tests)):
                return True
            overs = [one.parts[1] for one in rest]
            return (
                not tests
                and isinstance(element, Name)
                and any(presence(over, names, depth) > 0 for over in overs)
            )
    return False


def _compared(op: str, left: Node, right: Node, names: Names, depth: int) -> int:
    tools = presence(left, names, depth)
    if tools and (
        _is_nothing(right) or (isinstance(right, Const) and right.value == 1 and op in ("<", ">="))
    ):
        return {"==": -tools, "<=": -tools, "<": -tools}.get(op, tools)
    if op in ("==", "!=") and reads_reason(left, names) and _has_tool_word(right):
        return 1 if op == "==" else -1
    return 0


def _is_nothing(node: Node) -> bool:
    match node:
        case Const(value=value):
            return value in (0, None, "", False)
        case Op(op="[]" | "{}", operands=()):
            return True
    return False


def _has_tool_word(node: Node) -> bool:
    return any(reason(word) is Reason.TOOLS for word in literals(node))


def literals(node: Node) -> list[str]:
    """The words that a node compares with: literals, and the members of enumerations."""
    found = []
    for part in walk(node):
        match part:
            case Const(value=str(text)):
                found.append(text)
            case Name(path=(*_, _, last)):
                found.append(last)
    return found


def is_about_tools(node: Node, names: Names, depth: int = 2) -> bool:
    """Whether tool calls are read anywhere in a node."""
    for part in walk(node):
        match part:
            case Const(value=str(text)) if text in TOOL_WORDS:
                return True
            case Name(path=(*_, last)) if says_tools(last):
                return True
            case Name() if depth and (value := names.value(part)) is not None:
                if not isinstance(value, Function) and is_about_tools(value, names, depth - 1):
                    return True
    return False


def reads_reason(node: Node, names: Names, depth: int = 2) -> bool:
    """Whether a node is a terminal reason."""
    match node:
        case Name(path=(*_, last)) if says_reason(last):
            return True
        case Name() if depth and (value := names.value(node)) is not None:
            return reads_reason(value, names, depth - 1)
        case Call(callee=Name(path=(*owner, _)), args=args):
            return (bool(owner) and says_reason(owner[-1])) or any(
                reads_reason(a, names, depth) for a in args
            )
        case Op(op="??" | "or" | "binary_expression", operands=(left, *_)):
            return reads_reason(left, names, depth)
    return False


def reasons(test: Node, names: Names) -> set[Reason]:
    """The kinds of reasons with which a condition compares a terminal reason."""
    match test:
        case Op(op="==" | "!=" | "in", operands=(left, right)):
            for subject, words_of in ((left, right), (right, left)):
                if reads_reason(subject, names):
                    return {kind for word in literals(words_of) if (kind := reason(word))}
        case Call(callee=Name(path=(*_, "includes" | "has"), base=base), args=(subject,)):
            if reads_reason(subject, names) and base is not None:
                return {kind for word in literals(base) if (kind := reason(word))}
    return set()
