"""Python, by the standard library's `ast`."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable
from itertools import pairwise

from goalmode.audit.tree import (
    IGNORE,
    Assign,
    Block,
    Case,
    Class,
    Comment,
    Const,
    Function,
    Handler,
    If,
    Leave,
    Loop,
    Name,
    Node,
    Nodes,
    NotParsed,
    Op,
    Source,
    Switch,
    Try,
    call,
    read,
)

_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "==", ast.IsNot: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.In: "in",
}  # fmt: skip


def parse(text: str) -> Source:
    """Raises NotParsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code of others
            module = ast.parse(text)
        return Source(_all(module.body), _comments(text))
    except SyntaxError as error:
        raise NotParsed(f"line {error.lineno or 1} does not parse as Python: {error.msg}") from None
    except ValueError as error:  # null bytes
        raise NotParsed(f"does not parse as Python: {error}") from None
    except (RecursionError, MemoryError):
        raise NotParsed("nested too deeply") from None


def _comments(text: str) -> tuple[Comment, ...]:
    found: list[Comment] = []
    if IGNORE not in text:
        return ()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append(Comment(token.start[0], token.string))
    except (tokenize.TokenError, SyntaxError):
        pass  # what comes after a place that only ast understands
    return tuple(found)


def _all(nodes: Iterable[ast.AST | None]) -> Nodes:
    return tuple(_node(node) for node in nodes if node is not None)


def _node(node: ast.AST) -> Node:
    if isinstance(node, ast.stmt):
        return _statement(node)
    return _expression(node)


def _statement(node: ast.stmt) -> Node:
    line = node.lineno
    match node:
        case ast.Expr(value=value):
            return _node(value)
        case ast.Assign(targets=targets, value=value):
            return Assign(line, _targets(targets), _node(value))
        case ast.AnnAssign(target=target, value=value) if value is not None:
            return Assign(line, _targets([target]), _node(value))
        case ast.AugAssign(target=target, op=op, value=value):
            return Assign(line, _targets([target]), _node(value), "-" if isinstance(op, ast.Sub) else "+")
        case ast.Return(value=value):
            return Leave(line, "return", None if value is None else _node(value))
        case ast.Raise(exc=value):
            return Leave(line, "raise", None if value is None else _node(value))
        case ast.Break():
            return Leave(line, "break")
        case ast.Continue():
            return Leave(line, "continue")
        case ast.If(test=test, body=body, orelse=orelse):
            return If(line, _node(test), _all(body), _all(orelse))
        case ast.While(test=test, body=body, orelse=orelse):
            return _then(Loop(line, _all(body), _node(test)), orelse)
        case (
            ast.For(target=each, iter=over, body=body, orelse=orelse)
            | ast.AsyncFor(target=each, iter=over, body=body, orelse=orelse)
        ):
            return _then(Loop(line, _all(body), None, _targets([each]), _node(over)), orelse)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return Function(line, node.name, _params(node.args), _all(node.body))
        case ast.ClassDef(name=name, body=body):
            return Class(line, name, _all(body))
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            caught = tuple(
                Handler(h.lineno, _node(h.type) if h.type else None, _all(h.body)) for h in handlers
            )
            return Try(line, (*_all(body), *_all(orelse)), caught, _all(final))
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            return Block(line, (*(_entered(item, line) for item in items), *_all(body)))
        case ast.Match(subject=subject, cases=cases):
            return Switch(line, _node(subject), tuple(_case(case, line) for case in cases))
    return Block(line, _all(ast.iter_child_nodes(node)))


def _then(loop: Loop, orelse: list[ast.stmt]) -> Node:
    return Block(loop.line, (loop, *_all(orelse))) if orelse else loop


def _entered(item: ast.withitem, line: int) -> Node:
    value = _node(item.context_expr)
    return value if item.optional_vars is None else Assign(line, _targets([item.optional_vars]), value)


def _case(case: ast.match_case, line: int) -> Case:
    default = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
    body = _all(case.body)
    return Case(body[0].line if body else line, () if default else tuple(_values(case.pattern)), body)


def _values(pattern: ast.pattern) -> list[Node]:
    match pattern:
        case ast.MatchValue(value=value):
            return [_node(value)]
        case ast.MatchSingleton(value=value):
            return [Const(pattern.lineno, value)]
        case ast.MatchOr(patterns=patterns) | ast.MatchSequence(patterns=patterns):
            return [value for part in patterns for value in _values(part)]
        case ast.MatchClass(cls=cls, patterns=patterns, kwd_patterns=more):
            inner = [value for part in [*patterns, *more] for value in _values(part)]
            return inner or [_node(cls)]
        case ast.MatchMapping(patterns=patterns):
            return [value for part in patterns for value in _values(part)] or [
                Name(pattern.lineno, ("mapping",))
            ]
        case ast.MatchAs(pattern=ast.pattern() as inner_pattern):
            return _values(inner_pattern)
    return [Name(pattern.lineno, ("pattern",))]


def _params(args: ast.arguments) -> Nodes:
    return tuple(Name(a.lineno, (a.arg,)) for a in [*args.posonlyargs, *args.args, *args.kwonlyargs])


def _targets(targets: Iterable[ast.expr]) -> Nodes:
    found: list[Node] = []
    for target in targets:
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                found += _targets(elts)
            case ast.Starred(value=value):
                found += _targets([value])
            case _:
                found.append(_node(target))
    return tuple(found)


def _expression(node: ast.AST) -> Node:
    line = getattr(node, "lineno", 1)
    match node:
        case ast.Constant(value=value):
            return Const(line, value if isinstance(value, str | int | float | bool) else None)
        case ast.Name(id=name):
            return Name(line, (name,))
        case ast.Attribute(value=value, attr=attr):
            return read(_node(value), attr)
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return read(_node(value), key)
        case ast.Subscript(value=value):
            return _node(value)
        case ast.Call(func=func, args=args, keywords=keywords):
            return call(line, _node(func), _all([*args, *(k.value for k in keywords)]))
        case ast.Await(value=value) | ast.Starred(value=value) | ast.YieldFrom(value=value):
            return _node(value)
        case ast.NamedExpr(target=target, value=value):
            return Assign(line, (_node(target),), _node(value))
        case ast.BoolOp(op=op, values=values):
            return Op(line, "and" if isinstance(op, ast.And) else "or", _all(values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Op(line, "not", (_node(operand),))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            return _compared(line, left, ops, rights)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Op(line, "?:", _all([test, body, orelse]))
        case ast.Lambda(args=args, body=body):
            return Function(line, "", _params(args), (Leave(line, "return", _node(body)),))
        case ast.Dict(values=values):
            return Op(line, "{}", _all(values))
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
            return Op(line, "[]", _all(elts))
    return Op(line, type(node).__name__, _all(n for n in ast.iter_child_nodes(node) if _counts(n)))


def _counts(node: ast.AST) -> bool:
    return not isinstance(node, ast.expr_context | ast.operator | ast.unaryop)


def _compared(line: int, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> Node:
    sides = [_node(side) for side in [left, *rights]]
    found: list[Node] = []
    for op, (a, b) in zip(ops, pairwise(sides), strict=True):
        if isinstance(op, ast.NotIn):
            found.append(Op(line, "not", (Op(line, "in", (a, b)),)))
        else:
            found.append(Op(line, _COMPARED[type(op)], (a, b)))
    return found[0] if len(found) == 1 else Op(line, "and", tuple(found))
