"""Python source as its own ast shows it, with edits that keep the rest of the text as it is. Nothing of the source runs."""

import ast
import re

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ADDS = ("append", "add", "appendleft", "extend", "insert", "update", "put")
EMPTY = ("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter")


class Refused(Exception):
    """Why there is no patch, a clause."""


class Source:
    def __init__(self, text):
        self.lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
        self.bytes = [line.encode() for line in self.lines]
        self.tree = ast.parse(text)
        self.parents = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self.edits = []  # (line, first byte, line, byte after the last, text)

    def text(self, node):
        if node.lineno == node.end_lineno:
            return self.bytes[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
        first, last = self.bytes[node.lineno - 1][node.col_offset :], self.bytes[node.end_lineno - 1][: node.end_col_offset]
        return b"".join([first, *self.bytes[node.lineno : node.end_lineno - 1], last]).decode()

    def up(self, node, kinds):
        """The nearest node above of some kind; None where there is none."""
        node = self.parents.get(node)
        while node is not None and not isinstance(node, kinds):
            node = self.parents.get(node)
        return node

    def statement(self, node):
        return node if isinstance(node, ast.stmt) else self.up(node, ast.stmt)

    def block(self, statement):
        """The list of statements that it stands in."""
        for _, value in ast.iter_fields(self.parents[statement]):
            if isinstance(value, list) and statement in value:
                return value
        raise Refused("its statement is in no block")

    def tests(self, node):
        """Whether a condition is made of it."""
        above = self.parents.get(node)
        while isinstance(above, (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp)):
            node, above = above, self.parents.get(above)
        return isinstance(above, (ast.If, ast.While, ast.IfExp)) and above.test is node

    def replace(self, node, text):
        self.edits.append((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text))

    def insert(self, statement, text, after):
        """Adds lines before or after a statement. If the statement shares its line, as in `if c: kept.append(x)`, one line is added within that line."""
        line = statement.end_lineno if after else statement.lineno
        decorators = getattr(statement, "decorator_list", None)
        if decorators and not after:
            line = min(d.lineno for d in decorators)
        first = self.bytes[statement.lineno - 1][: statement.col_offset]
        rest = self.bytes[statement.end_lineno - 1][statement.end_col_offset :].strip()
        if first.strip() or rest and not rest.startswith(b"#"):
            if "\n" in text or hasattr(statement, "body"):
                raise Refused("line %d has more than one statement" % statement.lineno)
            at = (statement.end_lineno, statement.end_col_offset) if after else (statement.lineno, statement.col_offset)
            self.edits.append((*at, *at, "; " + text if after else text + "; "))
            return
        end = re.search(rb"[\r\n]*$", self.bytes[statement.lineno - 1]).group().decode() or "\n"
        whole = "".join(first.decode() + part + end for part in text.split("\n"))
        at = line + 1 if after else line
        if at > len(self.bytes) and not self.bytes[-1].endswith((b"\n", b"\r")):
            whole = end + whole[: -len(end)]
            self.edits.append((line, len(self.bytes[line - 1]), line, len(self.bytes[line - 1]), whole))
        else:
            self.edits.append((at, 0, at, 0, whole))

    def edited(self):
        """The whole text with all edits."""
        rows, begun = [*self.bytes, b""], (len(self.bytes) + 2, 0)
        for line, start, last, end, text in sorted(set(self.edits), reverse=True):
            if (last, end) > begun:
                raise Refused("two changes of line %d exclude each other" % line)
            begun = line, start
            rows[line - 1 : last] = [rows[line - 1][:start] + text.encode() + rows[last - 1][end:]]
        text = b"".join(rows).decode()
        ast.parse(text)
        return text

    def needs_import(self, name):
        """Adds an import below the module's docstring and what it has from the future, unless it is there."""
        for node in self.tree.body:
            if isinstance(node, ast.Import) and any(a.name == name and not a.asname for a in node.names):
                return
        body = [n for n in self.tree.body if not (isinstance(n, ast.ImportFrom) and n.module == "__future__" or is_docstring(n))]
        self.insert(body[0], "import " + name, after=False)


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def refers(node, name):
    return isinstance(node, ast.Name) and node.id == name or isinstance(node, ast.Attribute) and node.attr == name


def base(node):
    """What is subscripted, or has a method called, at the inside: kept of kept[k], and of kept.setdefault(k, [])."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get"):
            node = node.func.value
        else:
            return node


class Growth:
    """A place that adds to a container: the statement, the container as a node and as source, the value that is added; by a key or not."""

    def __init__(self, node, statement, to, receiver, value, keyed):
        self.node, self.statement, self.to, self.receiver, self.value, self.keyed = node, statement, to, receiver, value, keyed


def growths(source, name):
    """The places that add to what has a name, in the order of their lines."""
    out = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ADDS and refers(base(node.func.value), name):
            value = node.args[-1] if node.args else None
            statement = source.parents[node]
            out.append(Growth(node, statement if isinstance(statement, ast.Expr) else None, node.func.value, receiver(source, node.func.value), value, False))
        elif isinstance(node, ast.Assign):
            for to in node.targets:
                if isinstance(to, ast.Subscript) and refers(base(to), name) and not isinstance(to.slice, ast.Slice):
                    out.append(Growth(node, node, to, receiver(source, to.value), node.value, True))
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.List) and refers(base(node.target), name):
            value = node.value.elts[0] if len(node.value.elts) == 1 else None
            out.append(Growth(node, node, node.target, receiver(source, node.target), value, False))
    return sorted(out, key=lambda g: g.node.lineno)


def receiver(source, node):
    """The source of a container: kept[k] for kept.setdefault(k, [])."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get") and node.args:
        return "%s[%s]" % (source.text(node.func.value), source.text(node.args[0]))
    return source.text(node)


def simple(node):
    """Reports whether reading it again does the same: names, attributes, constants, and subscripts of these."""
    return all(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.expr_context, ast.Tuple)) for n in ast.walk(node))


def beginnings(source, name):
    """The assignments that make a container empty."""
    out = []
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in getattr(node, "targets", None) or [node.target]:
                for t, v in zip(target.elts, node.value.elts) if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else [(target, node.value)]:
                    if refers(t, name) and is_empty(v):
                        out.append((node, v))
    return out


def is_empty(node):
    if isinstance(node, (ast.List, ast.Tuple)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return all(is_empty(v) for v in node.values)
    return isinstance(node, ast.Call) and last_name(node.func) in EMPTY and all(isinstance(a, ast.Name) for a in node.args)


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def chain_above(source, node):
    """The outermost of the attributes and calls that begin with a node: kept[0].mean().item() of kept[0]."""
    while True:
        parent = source.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.value is node:
            node = parent
        elif isinstance(parent, ast.Call) and parent.func is node and isinstance(node, ast.Attribute) and all(isinstance(a, ast.Constant) for a in parent.args) and not parent.keywords:
            node = parent
        else:
            return node


class Read:
    """A place that reads a container: "length", "last" (the newest n), "item" (one, by a chain of calls), or "whole"."""

    def __init__(self, kind, node, most=0, inner=None, outer=None):
        self.kind, self.node, self.most, self.inner, self.outer = kind, node, most, inner, outer


def number(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        n = number(node.operand)
        return None if n is None else -n
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def compared(source, length):
    """How many items there have to be so that comparisons of their number say what they did; 0 where there are none. Raises Refused where
    no number of items is enough."""
    above = source.parents.get(length)
    if isinstance(above, ast.Compare):
        others = [number(n) for n in [above.left, *above.comparators] if n is not length]
        if all(n is not None and n >= 0 for n in others) and not any(isinstance(op, (ast.Eq, ast.NotEq)) for op in above.ops):
            return max(others) + 1
    if isinstance(above, (ast.Compare, ast.BinOp)) and source.tests(above) or named_for_test(source, length):
        raise Refused("line %d decides by the number of items" % length.lineno)
    return 0


def named_for_test(source, length):
    """Reports whether a length, or what is computed of it, gets a name that a condition reads, as n of `n = len(kept)` in `if n % 10 == 0`."""
    value, above = length, source.parents.get(length)
    while isinstance(above, (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp)):
        value, above = above, source.parents.get(above)
    if not isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or above.value is not value:
        return False
    for target in getattr(above, "targets", None) or [above.target]:
        within = isinstance(target, ast.Name) and source.up(above, FUNCTIONS) or source.tree
        conditions = [n.test for n in ast.walk(within) if isinstance(n, (ast.If, ast.While, ast.IfExp))]
        if last_name(target) and any(refers(n, last_name(target)) for condition in conditions for n in ast.walk(condition)):
            return True
    return False


def reads(source, name):
    """How the program reads what has a name, where it does not add to it."""
    adding = {id(n) for g in growths(source, name) for n in ast.walk(g.to)}
    out = []
    for node in ast.walk(source.tree):
        if refers(node, name) and isinstance(node.ctx, ast.Load) and id(node) not in adding:
            out.extend(read(source, node, name))
    return out


def read(source, node, name):
    parent = source.parents.get(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        called = last_name(parent.func)
        if called == "len" and len(parent.args) == 1:
            return [Read("length", node, compared(source, parent))]
        for f in ast.walk(source.tree):  # handed on by the same name: its reads there are seen as well
            if isinstance(f, FUNCTIONS) and f.name == called and any(a.arg == name for a in f.args.args):
                return []
    if isinstance(parent, ast.Attribute) and parent.attr in ("clear", "pop", "popleft"):
        return [Read("emptied", node)]
    whole, most = node, None
    if isinstance(parent, ast.Subscript) and parent.value is node:
        if isinstance(parent.slice, ast.Slice):
            n = number(parent.slice.lower) if parent.slice.lower is not None else None
            if n is not None and n < 0 and parent.slice.step is None:
                most = -n
            whole = parent
        else:
            n = number(parent.slice)
            outer = chain_above(source, parent)
            return [Read("last" if n is not None and n < 0 else "item", node, -n if n is not None and n < 0 else 0, parent, outer)]
    above = source.parents.get(whole)
    if isinstance(above, ast.comprehension) and above.iter is whole:
        made = source.parents[above]
        inner = outer = None
        if isinstance(made, (ast.GeneratorExp, ast.ListComp)) and len(made.generators) == 1 and not above.ifs and isinstance(above.target, ast.Name):
            items = [n for n in ast.walk(made.elt) if isinstance(n, ast.Name) and n.id == above.target.id]
            if len(items) == 1 and chain_above(source, items[0]) is made.elt:
                inner, outer = items[0], made.elt
        return [Read("last" if most else "item" if inner is not None else "whole", node, most or 0, inner, outer)]
    return [Read("last" if most else "whole", node, most or 0)]
