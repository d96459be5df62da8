"""Patches of the simple causes: the smallest change of the source that lets go of what a leak keeps."""

GRAPHS = ("graph-retained", "pending-graph", "forward-only-graph", "gradient-graph-cycle")
CACHES = ("cache", "lru_cache")
# Entries of a cache that gets a bound, as functools.lru_cache has it by default.
BOUND = 128


def holder_name(path):
    """kept of "fit.<locals>.kept['x'] and 2 more like it"."""
    path = re.sub(r" and [\d ,]+ more like it$", "", path).rstrip("…")
    while path.endswith("]"):
        path = path[: path.rindex("[")]
    return path.rpartition(".")[2].rpartition(" default ")[2]


def nearest(source, places, leak):
    """The place that is on the recorded stack, or else nearest above or below; one alone needs no choice."""
    lines = [f["line"] for f in leak["frames"]]
    on = [p for p in places if any(p.node.lineno <= n <= p.node.end_lineno for n in lines)]
    if on or len(places) < 2:
        return on or places
    near = min(places, key=lambda p: min([abs(p.node.lineno - n) for n in lines] or [0]))
    return [near]


def patch(source, leak):
    """Adds edits that mend a leak, and returns what they do, a clause."""
    path, kind = leak["path"], leak["kind"]
    name = holder_name(path)
    if not name.isidentifier():
        raise Refused("what holds it has no name in the source")
    if leak["trial"] == "unhook" or leak["cause"] == "hook-not-removed":
        return remove_hook(source, leak)
    if kind == "cache":
        return bound_cache(source, name, leak)
    if kind == "chain":
        return cut_chain(source, path, name)
    places = nearest(source, growths(source, name), leak)
    if not places:
        if leak["cause"] in GRAPHS or leak["trial"] == "detach":
            return detach_variable(source, name)
        raise Refused("nothing in this file adds to `%s`" % name)
    return container(source, name, places, leak)


def container(source, name, places, leak):
    variable = isinstance(base_of(places[0]), ast.Name)
    places = [p for p in places if isinstance(base_of(p), ast.Name) == variable]
    used = [r for r in reads(source, name) if isinstance(r.node, ast.Name) == variable]
    last = any(r.most for r in used) and all(r.most or r.kind == "length" for r in used)
    if last and not places[0].keyed and leak["kind"] == "list":
        return bound_list(source, name, places, used, leak)
    chain = common_chain(source, used)
    if chain and all(p.value is not None and not p.keyed for p in places):
        for p in places:
            source.replace(p.value, applied(source, p.value, chain))
        for r in used:
            if r.outer is not None:
                without_chain(source, r)
        return "`%s` keeps the numbers that are read of it, %s, and not tensors" % (name, chain)
    if places[0].keyed or leak["kind"] in ("dict", "map") and not places[0].receiver.endswith("]"):
        return bound_dict(source, name, places, leak)
    if leak["kind"] == "set":
        raise Refused("a set does not know its oldest items")
    if leak["needed"]:
        raise Refused("the program uses what `%s` holds" % name)
    whole = [r for r in used if r.kind in ("whole", "item")]
    if not whole:
        return bound_list(source, name, places, used, leak)
    values = [p.value for p in places]
    if leak["cause"] in GRAPHS and all(v is not None and not detached(v) for v in values):
        for v in values:
            source.replace(v, applied(source, v, ".detach()"))
        return "`%s` keeps tensors without their graph" % name
    if all(is_view(v) for v in values):
        for v in values:
            source.replace(v, applied(source, v, ".clone()"))
        return "`%s` keeps copies of the parts that it needs, in place of views of whole tensors" % name
    moved = move(source, name, whole)
    if moved:
        return moved
    raise Refused("the program reads all of `%s`: which items it can let go, memdiag cannot know" % name)


def without_chain(source, r):
    """Reads the number itself: sum(kept) in the place of sum(x.item() for x in kept)."""
    made = source.parents[r.outer]
    if isinstance(r.inner, ast.Name) and isinstance(made, (ast.GeneratorExp, ast.ListComp)):
        text = source.text(made.generators[0].iter)
        source.replace(made, "list(%s)" % text if isinstance(made, ast.ListComp) else "(%s)" % text)
    else:
        source.edits.append((r.inner.end_lineno, r.inner.end_col_offset, r.outer.end_lineno, r.outer.end_col_offset, ""))


def base_of(place):
    return base(place.to)


def detached(v):
    return isinstance(v, ast.Call) and last_name(v.func) in ("detach", "item", "tolist", "float", "numpy", "cpu")


def is_view(v):
    return isinstance(v, ast.Subscript) or isinstance(v, ast.Call) and last_name(v.func) in ("view", "narrow", "select", "unbind", "t", "transpose", "squeeze", "unsqueeze", "expand")


def applied(source, value, chain):
    text = source.text(value)
    plain = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List))
    return (text if plain else "(" + text + ")") + chain


def common_chain(source, used):
    """What is called on each item wherever the container is read, if that ends in a number; None where they differ."""
    chains = set()
    for r in used:
        if r.kind == "length":
            continue
        if r.outer is None or r.inner is r.outer:
            return None
        outer = source.text(r.outer)
        chains.add(outer[len(source.text(r.inner)) :])
    if len(chains) != 1:
        return None
    chain = chains.pop()
    return chain if chain.endswith(".item()") else None


def bound_list(source, name, places, used, leak):
    made = [(n, v) for n, v in beginnings(source, name) if isinstance(v, ast.Call) and last_name(v.func) == "deque"]
    most = max([r.most for r in used] or [0]) or 1
    why = "as many as are read" if any(r.most for r in used) else "since nothing reads more than their number" if used else "since nothing reads them"
    if leak["kind"] == "deque" or made:
        if len(made) != 1 or made[0][1].keywords:
            raise Refused("where the deque `%s` is made is not in this file" % name)
        call = made[0][1]
        source.replace(call, source.text(call)[:-1] + (", " if call.args else "") + "maxlen=%d)" % most)
        return "`%s` keeps its newest %s, %s" % (name, items(most), why)
    for p in places:
        if p.statement is None:
            raise Refused("line %d adds to `%s` within an expression" % (p.node.lineno, name))
        if not simple(ast.parse(p.receiver, mode="eval").body):
            raise Refused("line %d adds to a list that has no name" % p.node.lineno)
        source.insert(p.statement, "del %s[:-%d]" % (p.receiver, most), after=True)
    return "`%s` keeps its newest %s, %s" % (name, items(most), why)


def items(n):
    return "item" if n == 1 else "%d items" % n


def bound_dict(source, name, places, leak):
    places = [p for p in places if p.keyed]
    if not places:
        raise Refused("nothing in this file adds to `%s` by a key" % name)
    guarded = all(is_guarded(source, p, name) for p in places)
    if not guarded and not leak["proven"]:
        raise Refused("whether the program reads `%s` again is not known" % name)
    most = min(BOUND, leak["kept"] or BOUND)
    for p in places:
        if not simple(ast.parse(p.receiver, mode="eval").body):
            raise Refused("line %d adds to a dictionary that has no name" % p.node.lineno)
        source.insert(p.statement, "if len(%s) > %d:\n    del %s[next(iter(%s))]" % (p.receiver, most, p.receiver, p.receiver), after=True)
    return "`%s` keeps its newest %s%s" % (name, items(most), ", and makes the others again" if guarded else "")


def is_guarded(source, place, name):
    """Reports whether an entry is made only where it is missing, so that one that went is made again."""
    above = source.up(place.node, (ast.If, ast.ExceptHandler, *FUNCTIONS))
    if isinstance(above, ast.ExceptHandler):
        return last_name(above.type) == "KeyError"
    if isinstance(above, ast.If):
        return any(isinstance(n, ast.Compare) and isinstance(n.ops[0], (ast.NotIn, ast.Is)) for n in ast.walk(above.test))
    return any(isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In) and any(refers(c, name) for c in n.comparators) for n in ast.walk(above)) if above is not None else False


def bound_cache(source, name, leak):
    most = min(BOUND, leak["kept"] or BOUND)
    for node in ast.walk(source.tree):
        if not isinstance(node, FUNCTIONS) or node.name != name:
            continue
        for d in node.decorator_list:
            f = d.func if isinstance(d, ast.Call) else d
            if last_name(f) not in CACHES:
                continue
            if last_name(f) == "lru_cache" and not (isinstance(d, ast.Call) and any(isinstance(a, ast.Constant) and a.value is None for a in [*d.args, *[k.value for k in d.keywords]])):
                raise Refused("the cache of `%s` has a bound" % name)
            if isinstance(f, ast.Attribute):
                source.replace(d, "%s.lru_cache(maxsize=%d)" % (source.text(f.value), most))
            else:
                source.needs_import("functools")
                source.replace(d, "functools.lru_cache(maxsize=%d)" % most)
            return "the cache of `%s` keeps %d results" % (name, most)
    raise Refused("the function `%s` with its cache is not in this file" % name)


def cut_chain(source, path, name):
    owner = holder_name(path.rstrip("…").rpartition(".")[0])
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and refers(node.targets[0], owner) and any(refers(n, owner) for n in ast.walk(node.value)):
            target = source.text(node.targets[0])
            if any(isinstance(n, ast.Assign) and any(refers(t, owner) for t in n.targets) and isinstance(n.value, ast.Constant) for n in ast.walk(source.tree)):
                source.insert(node, "if %s is not None:\n    %s.%s = None" % (target, target, name), after=False)
            else:
                source.insert(node, "%s.%s = None" % (target, name), after=False)
            return "`%s` lets go of the one before the last before a new one is made" % owner
    raise Refused("the line that makes `%s` of the one before is not in this file" % owner)


def detach_variable(source, name):
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "backward" and refers(node.value, name):
            raise Refused("`%s` is taken backward: it needs its graph" % name)
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.AugAssign) and refers(node.target, name):
            source.replace(node.value, applied(source, node.value, ".detach()"))
            found.append(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and any(refers(n, name) for n in ast.walk(node.value)):
            if refers(node.targets[0], name) and isinstance(node.value, ast.BinOp):
                source.replace(node.value, "(" + source.text(node.value) + ").detach()")
                found.append(node)
            elif any(refers(t, name) for t in ast.walk(node.targets[0])) and isinstance(node.value, ast.Call) and last_name(node.value.func) != "detach":
                target = next(t for t in ast.walk(node.targets[0]) if refers(t, name))
                text = source.text(target)
                source.insert(node, "%s = %s.detach()" % (text, text), after=False)
                found.append(node)
    if not found:
        raise Refused("no line in this file makes `%s` of what it was before" % name)
    return "`%s` goes on without the graph of earlier steps" % name


def remove_hook(source, leak):
    functions = {f["function"].rpartition(".")[2] for f in leak["frames"]}
    found = taken = 0
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        called = last_name(node.value.func)
        within = source.up(node, FUNCTIONS)
        if not called.startswith("register_") or not called.endswith("hook") or within is not None and within.name == "__init__":
            continue
        if source.up(node, LOOPS) is None and (within is None or functions and within.name not in functions and not is_called_in_loop(source, within.name)):
            continue
        block = source.block(node)
        taken += 1
        handle = "handle" if taken == 1 else "handle_%d" % taken
        while re.search(r"\b%s\b" % handle, "".join(source.lines)):
            taken += 1
            handle = "handle_%d" % taken
        last = block[-1]
        if isinstance(last, (ast.Return, ast.Continue, ast.Break)):
            if isinstance(last, ast.Return) and last.value is not None and not isinstance(last.value, (ast.Name, ast.Constant)):
                raise Refused("the hook of line %d is used up to the end of its function" % node.lineno)
            source.insert(last, handle + ".remove()", after=False)
        else:
            source.insert(last, handle + ".remove()", after=True)
        source.edits.append((node.lineno, node.col_offset, node.lineno, node.col_offset, handle + " = "))
        found += 1
    if not found:
        raise Refused("no line in this file registers a hook again and again")
    return "hooks are removed at the end of the block that registers them"


def is_called_in_loop(source, name):
    return any(isinstance(n, ast.Call) and last_name(n.func) == name and source.up(n, LOOPS) is not None for n in ast.walk(source.tree))


def move(source, name, whole):
    """Makes a list anew in each turn of the loop that adds to it and reads it, where that is one loop below the line that makes it."""
    made = beginnings(source, name)
    if len(made) != 1 or not isinstance(made[0][0], ast.Assign) or isinstance(made[0][0].targets[0], ast.Tuple):
        return None
    statement = made[0][0]
    block = source.block(statement)
    loops = [n for n in block[block.index(statement) + 1 :] if any(refers(x, name) for x in ast.walk(n))]
    if len(loops) != 1 or not isinstance(loops[0], LOOPS) or not all(any(x is r.node for x in ast.walk(loops[0])) for r in whole):
        return None
    text = source.text(statement)
    first = loops[0].body[0]
    if source.bytes[statement.lineno - 1].decode().strip() != text:
        return None
    source.insert(first, text, after=False)
    source.edits.append((statement.lineno, 0, statement.lineno + 1, 0, ""))
    return "`%s` is made anew in each turn of the loop" % name


def answer_patch(request):
    """A new text of each file for all leaks, and why there is none for the others. The first of a leak's files that can mend it does."""
    texts = {f["name"]: f["text"] for f in request["files"]}
    out = {"files": [], "done": [], "refused": []}
    edits = {}
    for leak in request["leaks"]:
        why = ""
        for name in leak["files"]:
            try:
                source = Source(texts[name])
                says = patch(source, dict(leak, frames=[f for f in leak["frames"] if f["file"] == name]))
                source.edits += edits.get(name, [])
                if source.edited() == texts[name]:
                    raise Refused("the patch changes nothing")
            except (Refused, SyntaxError) as e:
                why = why or str(e)
                continue
            edits[name] = source.edits
            out["done"].append({"id": leak["id"], "says": says})
            break
        else:
            out["refused"].append({"id": leak["id"], "why": why or "its source is not there"})
    for name, all_of in edits.items():
        source = Source(texts[name])
        source.edits = all_of
        out["files"].append({"name": name, "text": source.edited()})
    return out
