"""The part of a walk that reads autograd's graph: from the tensors that the walk has found back to what their graphs saved."""

import collections

from ._clock import work
from ._graph import MOST
from ._length import once, own
from ._places import Votes

# Seconds that walks may cost on top of their budget where tracemalloc slows them down.
TRACED = 0.3
# Seconds of one walk at most.
SECONDS = 0.1
# A site's holder is reported if the walk found this share of the site's objects.
COVERAGE = 0.5
# A site with survivors of so many different steps grows.
BIRTHS = 4
# Nodes of autograd's graph whose saved tensors are read: NODES for one tensor, ALL_NODES in all. COUNTED: how many nodes are counted if
# the process grows by more than tensors take.
NODES, ALL_NODES, COUNTED = 400, 4000, 10_000
# Beyond NODES, one node in so many is read.
SPARSE = 16
# Shown instead of a path if no name leads to the holder: a graph may be in a cycle, and C code may hold objects.
NAMELESS = "(no name leads to it)"
# After so many storages of a site the search for that site ends: the running step has one of them, the graph's holder the others.
OFTEN = 32


class Autograd:
    """The part of a walk that reads graphs."""

    def graphs(self, left, counting, seconds=SECONDS):
        """Searches for storages that no object holds in the graphs of the tensors found: those of the sites left. With counting it also counts
        the nodes there. If several tensors share a graph, its holder is the one that leads to most nodes before the graph meets another of them:
        of a state and a loss computed from it, the state."""
        # The newest first: the graphs of different steps look alike.
        ends = {self.tensor.grad_fn.__get__(t): node for t, node in reversed(self.graph_roots)}
        linked, nodes = {f: [f] for f in ends}, collections.Counter()
        begun, seen, found = work(), set(), {site: collections.Counter() for site in left}
        left, whole, all_read = set(left), True, True
        # NODES nodes of each graph first, and then the rest: the storages of steps that were not watched are unknown.
        waiting = [(NODES, [(first, first)]) for first in ends]
        for stretch, stack in waiting:
            if len(seen) > ALL_NODES and stretch:
                all_read = all_read and not left
                left.clear()
            most = COUNTED if counting or not stretch else len(seen) + stretch if left else 0
            reading = len(seen) + stretch
            while stack and whole:
                f, end = stack.pop()
                if f in ends and linked[f] is not linked[end]:
                    fewer, more = sorted((linked[f], linked[end]), key=len)
                    more += fewer
                    linked.update(dict.fromkeys(fewer, more))
                if f is None or f in seen:
                    continue
                if len(seen) >= most:
                    whole, all_read = not counting, all_read and not left
                    if stretch and left and not counting:
                        waiting.append((0, [*stack, (f, end)]))
                    break
                end = f if f in ends else end
                seen.add(f)
                nodes[end] += 1
                reads = left and (len(seen) <= reading or len(seen) % SPARSE == 0)
                all_read = all_read and (reads or not left)
                whole = len(seen) % 32 or work() - begun < (max(TRACED, seconds) if reads else seconds)
                for site in self.saved(f) if reads else ():
                    if site in left:
                        found[site][end] += 1
                        if found[site].total() >= OFTEN:
                            left.discard(site)
                stack.extend((g, end) for g, _ in f.next_functions)
        keeper = {end: max(linked[end], key=nodes.__getitem__) for end in nodes}
        for site, times in found.items():
            # If all graphs were read to their ends and few storages were found, those are the running step's, and the graphs do not hold the others.
            if times and all_read and whole and not self.cut and times.total() < min(OFTEN, COVERAGE * self.sizes[site]):
                self.graph_hits[site] = NAMELESS, "graph", 0, ()
            elif times:
                path, _, items, places = self.keepers(times, ends, keeper).holder()
                self.graph_hits[site] = path, "graph", items, places
                if times.total() >= min(BIRTHS, COVERAGE * self.sizes[site]):
                    self.in_graph.add(site)
        if counting and nodes:
            votes = self.keepers(nodes, ends, keeper)
            self.kept = votes.holder()[0], round(votes.total), bool(whole)
            each = collections.Counter()
            for end, n in nodes.items():
                each[keeper[end]] += n
            self.ends = [(ends[end], ends[end].single()[0], end, n) for end, n in each.most_common()[:MOST]]  # most_common(MOST) would import heapq

    def keepers(self, times, ends, keeper):
        """Votes for the places of the holders of graphs. times: how much was found in each graph."""
        votes, each = Votes(), collections.Counter()
        for end, n in times.items():
            each[keeper[end]] += n
        for end, n in each.most_common():
            votes.add(ends[end], n)
        return votes

    def saved(self, f):
        """The sites of the storages that a node of the graph has saved, or to whose gradient it adds. For operations of the program's own also of
        those that they store on themselves."""
        out, d = [], own(f, self.fields(type(f))[0])
        names = once(self.nodes, type(f), lambda: [n for n in dir(f) if self.prefix and n.startswith(self.prefix) or n == "variable"])
        for name in [*names, *(n for n in list(d) if n not in names)]:
            try:
                v = d[name] if name in d else getattr(f, name)
                if name.startswith("_raw"):
                    v = v.data  # a list of them has no data and is left out: backward frees it, and then its items must not be read
            except Exception:
                continue  # released by backward
            for x in v if isinstance(v, (tuple, list)) else (v,):
                for x in (x, self.tensor.grad.__get__(x)) if name == "variable" else (x,):
                    if issubclass(type(x), self.tensor):
                        try:
                            s = self.tensor.untyped_storage(x)
                            out.append(self.site(s))
                            if self.handled is not None and s._cdata not in self.handled:
                                self.given.add(s._cdata)
                        except Exception:
                            pass  # it has none
        return out
