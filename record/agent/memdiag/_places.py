"""Places on the paths of a walk, and which of them holds the objects that were found."""

import collections
import re
import sys

# Items of a container that are visited, and of a container inside another one. In a window each costs more, and the new items that are
# searched for are at the end.
ITEMS, NEW = (400, 400), (60, 10)
# Containers that are alike must have TALLER times as many items as there are containers. Otherwise their number grows, as in a list of lists.
# READ: if there are at most so many, their lengths are read again.
TALLER, READ = 4, 16
# A dictionary of an nn.Module is a holder only if at least so many objects were found in it.
GATHERED = 4
# The depth of an attribute of an object that a variable has. The object has depth 1.
NAMED = 2
# A path with the same attribute so many times is a chain.
LINKS = 3
# The dictionaries of an nn.Module, as labels: the program writes their items as attributes.
PARTS = {"._modules", "._parameters", "._buffers"}
CONTAINERS = {"list", "dict", "set", "deque", "tuple", "cache", "array"}
DIGITS = re.compile(r"\d+")
# In a running method the class names the object: "Trainer.fit.<locals>.self" is "Trainer".
SELF = re.compile(r"^(?:.*\.)?([A-Za-z_]\w*)\.[A-Za-z_]\w*\.<locals>\.self\b")


class Node:
    """A place on a path. parent, and label: how it is reached from there. items: how many it has. share: how many similar places it stands for,
    since of a large container only some items are visited. Of a container also id: its id(); each: how many items one visited item stands for;
    bound: how many items it may have, 0 if unknown; and ring: if set, the bound is its length, as long as that stays. place: the index of an item
    of a list, if its label does not name it. other: the place of the container that also holds what a variable has. waits: a weak reference
    to the suspended function in which the path begins."""

    __slots__ = ("parent", "label", "kind", "items", "share", "id", "depth", "each", "bound", "ring", "place", "other", "waits")

    def __init__(self, parent, label, kind="", place=None):
        self.parent, self.label, self.kind, self.items, self.id, self.each = parent, label, kind, 0, 0, 1
        self.place, self.other, self.waits = place, None, None
        self.bound, self.ring = 0, False
        self.share = 1 if parent is None else parent.share * parent.each
        self.depth = 0 if parent is None else parent.depth + 1

    def path(self):
        parts, node = [self.label], self.parent
        while node is not None:
            if node.label not in PARTS:
                parts.append(node.label)
            node = node.parent
        return SELF.sub(r"\1", "".join(reversed(parts)))

    def variable(self):
        """The variable at which the path begins: the label of its owner, and its own."""
        node = self
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        return node.parent.label if node.parent is not None else "", node.label

    def likeness(self):
        """Equal for places of the same depth whose last labels differ only in numbers and keys, such as one list for each layer."""
        return self.depth, "[" if self.label.startswith("[") else DIGITS.sub("", self.label)

    def containers(self):
        """The containers on the path, innermost first."""
        node = self
        while node is not None:
            if node.kind in CONTAINERS:
                yield node
            node = node.parent

    def chain(self):
        """The path to the first of a chain's objects, with "…", and how often the path has the attribute, or variable of a closure, by which one
        object refers to the next: "__main__.newest.previous…"."""
        nodes, node = [], self
        while node is not None:
            if node.label.startswith((".", " closure ")) and node.label not in PARTS:
                nodes.append(node)
            node = node.parent
        label, times = collections.Counter(n.label for n in nodes).most_common()[0] if nodes else ("", 0)
        first = next((n for n in reversed(nodes) if n.label == label), self)
        return first.path() + "…", times

    def single(self):
        """Path, kind and items of a place that is in no container."""
        node = self
        while node.parent is not None and not node.label:
            node = node.parent
        return node.path(), node.kind if node.kind in ("attribute", "closure") else "variable", 0


class Votes:
    """Where the objects of one site were found."""

    def __init__(self):
        self.total, self.loose, self.containers, self.single, self.deepest = 0, 0, {}, None, None
        self.place = None  # the place of the holder
        self.depths = set()  # at which they were found
        self.named = {}  # by id of a place near a name: how many were found below it, and the place

    def add(self, node, times=1):
        self.total += node.share * times
        self.depths.add(node.depth)
        self.single = self.single or node
        if self.deepest is None or node.depth > self.deepest.depth:
            self.deepest = node
        near = node
        while near.depth > NAMED:
            near = near.parent
        self.named.setdefault(id(near), [0, near])[0] += node.share * times
        held = False
        for held in node.containers():
            entry = self.containers.setdefault(id(held), [0, held])
            entry[0] += node.share * times
        if not held:
            self.loose += node.share * times

    def holder(self, stay=sys.maxsize):
        """Returns the path, kind and items of the holder, and the nodes of its containers, or none if it is no container. The holder is the innermost
        container with nearly all objects that stay, without those that only variables hold, which are the running step's. Of a list of lists it is
        the outer one. It may be several containers that are alike: the longest is named. Or it is a chain of objects, such as a linked list, or
        exceptions with their causes."""
        best = self.best(self.containers, stay) or self.best(self.elsewhere(), stay)
        if not best:
            path, links = self.deepest.chain()
            if links >= LINKS and (links >= self.total / 2 or len(self.depths) >= links):  # each object of the chain has one, or several
                return path, "chain", round(min(self.total, links + 1)), ()
            self.place = self.single
            return *self.single.single(), ()
        first = self.place = best[0]
        path, items = first.path(), first.items
        if len(best) > 1:
            path += " and %d more like it" % (round(sum(c.share for c in best)) - 1)
            items = round(sum(c.items * c.share for c in best))
        again = len(best) == 1 or len(best) <= READ and all(c.share == 1 for c in best)
        return path, first.kind, items, tuple(best) if again else ()

    def inside(self, nodes):
        """How many were found in these containers."""
        return sum(self.containers.get(id(n), (0,))[0] for n in nodes)

    def elsewhere(self):
        """The containers, with the objects found in variables that are in a container, too: of models in a list, the one that trains."""
        table = {i: [n, c] for i, (n, c) in self.containers.items()}
        for n, node in self.named.values():
            while node is not None and node.other is None:
                node = node.parent
            for c in node.other.containers() if node else ():
                if c.kind != "tuple":
                    table.setdefault(id(c), [0, c])[0] += n
        return table

    def best(self, containers, stay):
        """The nodes of the container that holds enough, or of several that are alike."""
        groups = {}
        for n, c in containers.values():
            groups.setdefault(c.likeness(), []).append((n, c))
        best, need = [], max(0.5 * min(self.total, stay), 0.9 * min(self.total - self.loose, stay))
        for group in groups.values():
            nodes = sorted((c for _, c in group), key=lambda c: c.items, reverse=True)
            votes = sum(n for n, _ in group)
            if votes < need or nodes[0].items < 2 or best and nodes[0].depth <= best[0].depth:
                continue
            if len(nodes) > 1 and (nodes[0].label == "[…]" or nodes[0].items < TALLER * sum(c.share for c in nodes)):
                continue  # their number grows, as of a list of lists
            if nodes[0].label in PARTS and votes < GATHERED:
                continue  # the fields of an nn.Module; one of them is replaced in each step
            best = nodes
        return best
