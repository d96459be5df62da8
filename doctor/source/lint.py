"""Patterns of the catalogue of causes, in the source of a program."""


def lint(source):
    """The places that look like a cause, in the order of their lines."""
    out = []

    def found(node, cause, says, name=""):
        above = node if isinstance(node, FUNCTIONS) else source.up(node, FUNCTIONS)
        first, last = (above.lineno, above.end_lineno) if above is not None else (1, len(source.lines))
        out.append({"line": node.lineno, "end": node.end_lineno, "first": first, "last": last, "cause": cause, "says": says, "name": name})

    taken_backward = {last_name(n.func.value) for n in ast.walk(source.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "backward"} - {""}
    emptied = {name_of(n) for n in ast.walk(source.tree) if is_emptying(n)} | reset(source)
    closes = any(isinstance(n, ast.Call) and last_name(n.func) == "close" for n in ast.walk(source.tree))
    for node in ast.walk(source.tree):
        repeated = source.up(node, LOOPS) is not None or source.up(node, FUNCTIONS) is not None
        if isinstance(node, ast.Call):
            called = last_name(node.func)
            if any(k.arg == "retain_graph" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords):
                found(node, "graph-retained", "backward keeps the graph: retain_graph=True")
            if called in ("append", "appendleft", "add") and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and repeated:
                appended(source, node, taken_backward, emptied, found)
            if called == "cycle" and last_name(getattr(node.func, "value", node.func)) in ("itertools", "cycle"):
                found(node, "cycle-keeps", "itertools.cycle retains every item")
            if called in ("figure", "subplots") and not closes and repeated:
                found(node, "container-grows", "a figure is made, and no line of this file closes one")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and hook_name(last_name(node.value.func)):
            within = source.up(node, FUNCTIONS)
            if source.up(node, LOOPS) is not None or within is not None and within.name != "__init__":
                found(node, "hook-not-removed", "a hook is registered, and its handle is not kept")
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and last_name(node.value) in taken_backward:
            found(node, "graph-retained", "a loss is added up with its graph", last_name(node.target))
        elif isinstance(node, FUNCTIONS):
            function(source, node, found)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            for n in ast.walk(node):
                if isinstance(n, ast.Call) and last_name(n.func) == "append" and any(isinstance(a, ast.Name) and a.id == node.name for a in n.args):
                    found(n, "error-holds-tensors", "an error is kept, and with it the frames that it went through", name_of(n.func))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and repeated:
            name = name_of(node.targets[0])
            outside = isinstance(base(node.targets[0]), ast.Attribute) or name in globals_of(source)
            if name and outside and name not in emptied and number(node.targets[0].slice) is None and any(is_empty(v) for _, v in beginnings(source, name)):
                found(node, "cache-without-bound", "`%s` gets entries, and no line of this file takes any out" % name, name)
    return sorted(out, key=lambda f: (f["line"], f["cause"]))


def hook_name(name):
    return name.startswith("register_") and name.endswith("hook")


def name_of(node):
    """The name of what is changed: kept of kept[k].append."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in (*ADDS, "clear", "pop", "popleft", "popitem", "remove", "discard"):
        node = node.value
    return last_name(base(node))


def is_emptying(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clear", "pop", "popleft", "popitem", "remove", "discard")


def reset(source):
    """The names of containers that are made anew in a function or a loop, that a del cuts, or that have a bound."""
    out = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Delete):
            out |= {last_name(base(t)) for t in node.targets}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            within = source.up(node, FUNCTIONS)
            targets = getattr(node, "targets", None) or [node.target]
            bounded = isinstance(node.value, ast.Call) and any(k.arg == "maxlen" for k in node.value.keywords)
            anew = source.up(node, LOOPS) is not None or within is not None and within.name != "__init__" and isinstance(targets[0], ast.Attribute)
            if bounded or anew:
                out |= {last_name(t) for t in targets if isinstance(t, (ast.Name, ast.Attribute))}
    return out


def globals_of(source):
    return {last_name(t) for n in source.tree.body if isinstance(n, (ast.Assign, ast.AnnAssign)) for t in (getattr(n, "targets", None) or [n.target])}


def appended(source, node, taken_backward, emptied, found):
    """What is appended in a loop, or in a function to what outlives it."""
    name, value = name_of(node.func), node.args[0]
    within = source.up(node, FUNCTIONS)
    inside = isinstance(base(node.func.value), ast.Name) and within is not None and any(source.up(n, FUNCTIONS) is within for n, _ in beginnings(source, name))
    if name in emptied or inside and source.up(node, LOOPS) is None:
        return
    if isinstance(value, ast.Name) and value.id in taken_backward:
        found(node, "graph-retained", "a loss is kept in `%s` with its graph" % name, name)
    elif isinstance(value, ast.Subscript) or last_name(getattr(value, "func", None)) in ("view", "narrow", "select"):
        found(node, "outputs-kept", "a part of a tensor is kept in `%s`, and with it the whole" % name, name)
    elif not isinstance(value, (ast.Constant, ast.JoinedStr)) and last_name(getattr(value, "func", None)) not in ("item", "float", "int", "str", "len"):
        found(node, "container-grows", "`%s` gets items, and no line of this file takes any out" % name, name)


def function(source, node, found):
    method = isinstance(source.parents.get(node), ast.ClassDef) and node.args.args and node.args.args[0].arg == "self"
    for d in node.decorator_list:
        f = d.func if isinstance(d, ast.Call) else d
        if last_name(f) not in ("cache", "lru_cache"):
            continue
        unbounded = last_name(f) == "cache" or isinstance(d, ast.Call) and any(isinstance(a, ast.Constant) and a.value is None for a in [*d.args, *[k.value for k in d.keywords]])
        if method:
            found(node, "cache-without-bound", "a cache of a method keeps its objects alive", node.name)
        elif unbounded:
            found(node, "cache-without-bound", "a cache has no bound", node.name)
    arguments = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
    for a, default in pairs:
        if default is not None and is_empty(default) and not isinstance(default, ast.Tuple) and growths_in(source, node, a.arg):
            found(default, "container-grows", "the default of `%s` is one object for all calls, and they add to it" % a.arg, a.arg)


def growths_in(source, function, name):
    return [g for g in growths(source, name) if function.lineno <= g.node.lineno <= function.end_lineno]


def answer_lint(request):
    out = {"files": []}
    for file in request["files"]:
        try:
            out["files"].append({"name": file["name"], "found": lint(Source(file["text"]))})
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            out["files"].append({"name": file["name"], "found": [], "failed": "%s: %s" % (type(e).__name__, e)})
    return out
