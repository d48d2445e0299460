"""What tree-sitter reads of TypeScript and JavaScript, as the rules see it."""

from __future__ import annotations

from collections.abc import Iterable

import tree_sitter as ts

from goalmode.audit.tree import (
    Assign,
    Block,
    Case,
    Class,
    Const,
    Function,
    Handler,
    If,
    Leave,
    Loop,
    Name,
    Node,
    Nodes,
    Op,
    Switch,
    Try,
    call,
    read,
)

_FUNCTIONS = {
    "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "method_definition",
}  # fmt: skip
_TRANSPARENT = {
    "parenthesized_expression", "await_expression", "non_null_expression", "as_expression", "satisfies_expression",
    "type_assertion", "spread_element", "yield_expression", "expression_statement", "export_statement",
}  # fmt: skip
_SAME = {"===": "==", "!==": "!=", "&&": "and", "||": "or"}
_NO_CODE = {"comment", "type_annotation", "type_arguments", "interface_declaration", "type_alias_declaration"}


def line_of(node: ts.Node) -> int:
    return node.start_point[0] + 1


def text_of(node: ts.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def nodes(found: Iterable[ts.Node]) -> Nodes:
    """What the rules see of them; types and comments are nothing."""
    return tuple(_node(node) for node in found if node.type not in _NO_CODE)


def _field(node: ts.Node, name: str) -> Node | None:
    found = node.child_by_field_name(name)
    return None if found is None else _node(found)


def _need(node: ts.Node, name: str) -> Node:
    """The part that the grammar says is there; a broken file may lack it."""
    return _field(node, name) or Const(line_of(node), None)


def _body(node: ts.Node | None) -> Nodes:
    if node is None:
        return ()
    if node.type in ("statement_block", "else_clause", "finally_clause", "class_body"):
        found = nodes(node.named_children)
        one = found[0] if len(found) == 1 else None
        return one.body if isinstance(one, Block) else found
    return (_node(node),)


def _node(node: ts.Node) -> Node:
    line, kind = line_of(node), node.type
    if kind in _TRANSPARENT:
        inner = [part for part in node.named_children if part.type not in _NO_CODE]
        return _node(inner[0]) if inner else Const(line, None)
    if kind in _FUNCTIONS:
        return _function(node, line)
    return _statement(node, kind, line) or _expression(node, kind, line)


def _statement(node: ts.Node, kind: str, line: int) -> Node | None:
    match kind:
        case "if_statement":
            orelse = _body(node.child_by_field_name("alternative"))
            return If(line, _need(node, "condition"), _body(node.child_by_field_name("consequence")), orelse)
        case "while_statement" | "do_statement" | "for_statement" | "for_in_statement":
            return _loop(node, kind, line)
        case "switch_statement":
            return _switch(node, line)
        case "return_statement" | "throw_statement":
            value = next(iter(nodes(node.named_children)), None)
            return Leave(line, "return" if kind == "return_statement" else "raise", value)
        case "break_statement":
            # With a label it leaves a loop further out, as far as a rule is concerned all of them.
            return Leave(line, "return" if node.child_by_field_name("label") else "break")
        case "continue_statement":
            return Leave(line, "continue")
        case "try_statement":
            handler = node.child_by_field_name("handler")
            caught = (
                () if handler is None else (Handler(line_of(handler), None, _body(_part(handler, "body"))),)
            )
            return Try(line, _body(_part(node, "body")), caught, _body(_part(node, "finalizer")))
        case "class_declaration" | "class" | "abstract_class_declaration":
            return Class(line, text_of(_part(node, "name") or node)[:80], _body(_part(node, "body")))
        case "statement_block" | "lexical_declaration" | "variable_declaration" | "else_clause":
            found = nodes(node.named_children)
            return found[0] if len(found) == 1 else Block(line, found)
        case "labeled_statement":
            return _need(node, "body")
    return None


def _part(node: ts.Node, name: str) -> ts.Node | None:
    return node.child_by_field_name(name)


def _loop(node: ts.Node, kind: str, line: int) -> Node:
    body = _body(_part(node, "body"))
    if kind == "for_in_statement":
        left = _part(node, "left")
        return Loop(line, body, None, () if left is None else _targets(left), _need(node, "right"))
    test = _part(node, "condition")
    condition = None if test is None or test.type in (";", "empty_statement") else _node(test)
    if isinstance(condition, Const):
        condition = None  # while (true)
    if kind != "for_statement":
        return Loop(line, body, condition)
    step = _field(node, "increment")
    loop = Loop(line, body if step is None else (*body, step), condition)
    start = _field(node, "initializer")
    return loop if start is None else Block(line, (start, loop))


def _switch(node: ts.Node, line: int) -> Node:
    cases: list[Case] = []
    values: list[Node] = []
    body = _part(node, "body")
    for part in () if body is None else body.named_children:
        if part.type not in ("switch_case", "switch_default"):
            continue
        value = _field(part, "value")
        default = part.type == "switch_default"
        inside = [_node(n) for n in part.children_by_field_name("body")]
        if value is not None:
            values.append(value)
        if inside or default:
            flat = tuple(n for one in inside for n in (one.body if isinstance(one, Block) else (one,)))
            cases.append(
                Case(
                    line_of(part),
                    () if default else tuple(values),
                    tuple(map(_inside_switch, flat)),
                )
            )
            values = []
    return Switch(line, _need(node, "value"), tuple(cases))


def _inside_switch(node: Node) -> Node:
    """A `break` here goes to the end of the switch, not of a loop."""
    match node:
        case Leave(how="break"):
            return Leave(node.line, "leave")
        case If(line, test, then, orelse):
            return If(line, test, tuple(map(_inside_switch, then)), tuple(map(_inside_switch, orelse)))
        case Block(line, body):
            return Block(line, tuple(map(_inside_switch, body)))
        case Try(line, body, handlers, final):
            caught = tuple(Handler(h.line, h.caught, tuple(map(_inside_switch, h.body))) for h in handlers)
            return Try(line, tuple(map(_inside_switch, body)), caught, tuple(map(_inside_switch, final)))
    return node


def _function(node: ts.Node, line: int) -> Function:
    name, body = _part(node, "name"), _part(node, "body")
    params = _part(node, "parameters") or _part(node, "parameter")
    if body is not None and body.type != "statement_block":
        value = _node(body)
        inside: Nodes = (Leave(value.line, "return", value),)
    else:
        inside = _body(body)
    return Function(
        line, "" if name is None else text_of(name), () if params is None else _targets(params), inside
    )


def _targets(node: ts.Node) -> Nodes:
    """The variables that a pattern binds; of `{ toolCalls: calls }` it is `calls`."""
    match node.type:
        case (
            "identifier"
            | "shorthand_property_identifier_pattern"
            | "member_expression"
            | "subscript_expression"
        ):
            found = _node(node)
            return (found,) if isinstance(found, Name) else ()
        case "pair_pattern" | "object_assignment_pattern" | "assignment_pattern" | "required_parameter":
            inner = (
                node.named_children[-1 if node.type == "pair_pattern" else 0] if node.named_children else None
            )
            return () if inner is None else _targets(inner)
        case "object_pattern" | "array_pattern" | "formal_parameters" | "optional_parameter" | "rest_pattern":
            return tuple(target for part in node.named_children for target in _targets(part))
    return ()


def _assigned(line: int, target: ts.Node | None, value: Node, op: str = "") -> Node:
    targets = () if target is None else _targets(target)
    if target is not None and target.type == "object_pattern":
        # What is taken apart is read: `const { toolCalls } = reply` is `toolCalls = reply.toolCalls`.
        each = tuple(Assign(line, (t,), read(value, t.path[-1])) for t in targets if isinstance(t, Name))
        return each[0] if len(each) == 1 else Block(line, each)
    return Assign(line, targets, value, op)


def _expression(node: ts.Node, kind: str, line: int) -> Node:
    match kind:
        case (
            "identifier" | "property_identifier" | "shorthand_property_identifier_pattern" | "this" | "super"
        ):
            return Name(line, (text_of(node),))
        case "shorthand_property_identifier" | "private_property_identifier":
            return Name(line, (text_of(node).lstrip("#"),))
        case "undefined" | "null":
            return Const(line, None)
        case "true" | "false":
            return Const(line, kind == "true")
        case "number":
            return Const(line, _number(text_of(node)))
        case "string":
            return Const(line, "".join(text_of(part) for part in node.named_children))
        case "member_expression":
            return read(_need(node, "object"), text_of(_part(node, "property") or node).lstrip("#"))
        case "subscript_expression":
            index, owner = _field(node, "index"), _need(node, "object")
            keyed = isinstance(index, Const) and isinstance(index.value, str)
            return read(owner, str(index.value)) if keyed and isinstance(index, Const) else owner
        case "call_expression" | "new_expression":
            args = _part(node, "arguments")
            callee = _need(node, "function" if kind == "call_expression" else "constructor")
            return call(line, callee, () if args is None else nodes(args.named_children))
        case "variable_declarator":
            value = _field(node, "value")
            return Const(line, None) if value is None else _named(line, _part(node, "name"), value)
        case "assignment_expression":
            return _named(line, _part(node, "left"), _need(node, "right"))
        case "public_field_definition" | "field_definition":
            name = _part(node, "name") or _part(node, "property")
            value = _field(node, "value")
            return Const(line, None) if value is None else _method(line, name, value)
        case "augmented_assignment_expression":
            op = text_of(_part(node, "operator") or node)[0]
            return _assigned(line, _part(node, "left"), _need(node, "right"), op)
        case "update_expression":
            op = text_of(_part(node, "operator") or node)[0]
            return _assigned(line, _part(node, "argument"), Const(line, 1), op)
        case "pair":
            return _method(line, _part(node, "key"), _need(node, "value"))
    return _operation(node, kind, line)


def _named(line: int, target: ts.Node | None, value: Node) -> Node:
    """`const run = async () => …` is a function with that name."""
    if target is not None and target.type in ("identifier", "member_expression"):
        function = _method(line, target, value)
        if isinstance(function, Function):
            return function
    return _assigned(line, target, value)


def _method(line: int, name: ts.Node | None, value: Node) -> Node:
    if isinstance(value, Function) and not value.name and name is not None:
        return Function(line, text_of(name).rpartition(".")[2].lstrip("#"), value.params, value.body)
    return value


def _number(text: str) -> float | None:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return None


def _operation(node: ts.Node, kind: str, line: int) -> Node:
    match kind:
        case "binary_expression":
            op = text_of(_part(node, "operator") or node)
            return Op(line, _SAME.get(op, op), _chain(node, op))
        case "unary_expression" if text_of(_part(node, "operator") or node) == "!":
            return Op(line, "not", (_need(node, "argument"),))
        case "ternary_expression":
            parts = ("condition", "consequence", "alternative")
            return Op(line, "?:", tuple(_need(node, part) for part in parts))
        case "object" | "array":
            return Op(line, "{}" if kind == "object" else "[]", nodes(node.named_children))
    return Op(line, kind, nodes(node.named_children))


def _chain(node: ts.Node, op: str) -> Nodes:
    """The operands of `a + b + c`, which the grammar nests to the left, as deep as the chain is long."""
    found = [_need(node, "right")]
    left = _part(node, "left")
    while op in ("+", "&&", "||") and left is not None and left.type == "binary_expression":
        operator = _part(left, "operator")
        if operator is None or text_of(operator) != op:
            break
        found.append(_need(left, "right"))
        left = _part(left, "left")
    found.append(Const(line_of(node), None) if left is None else _node(left))
    return tuple(reversed(found))
