"""Places on the paths of a walk, and which of them holds what was found."""

import collections
import re
import sys

# Items of one container that are looked at, and of one inside another. In a window each costs more, and what is
# looked for is new, and so at the end.
ITEMS, NEW = (400, 400), (60, 10)
# Containers that are alike have so many times as many items as there are of them; else it is their number that
# grows, as of a list of lists. Of so many at most the lengths are read again.
TALLER, READ = 4, 16
# A module's own dictionary holds what grows where so many were found in it.
GATHERED = 4
# So deep lies what a variable has, and an attribute of it.
NAMED = 2
# A path with so many times the same attribute is a chain.
LINKS = 3
# The dictionaries of an nn.Module, as labels: the program spells what is in them as attributes.
PARTS = {"._modules", "._parameters", "._buffers"}
CONTAINERS = {"list", "dict", "set", "deque", "tuple", "cache", "array"}
DIGITS = re.compile(r"\d+")
# What a method that runs has of its object is known by the class: "Trainer.fit.<locals>.self" is "Trainer".
SELF = re.compile(r"^(?:.*\.)?([A-Za-z_]\w*)\.[A-Za-z_]\w*\.<locals>\.self\b")


class Node:
    """A place on a path: its parent, how it is reached from there, how many items it has, and how many
    places like it this one stands for, where only some items of a container are looked at. Of a
    container also its id(), how many items each of those stands for that are looked at, and its bound: how many it
    may have, 0 where nothing tells; a ring's is its length, as long as that stays. An item of a list whose label does
    not name it has its place there, from 0 on. What a variable has may be in a container, too: that is its other place.
    Where a path begins in a function that waits, waits is a weak reference to it."""

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
        """The variable in which the path begins: the labels of what has it, and of itself."""
        node = self
        while node.parent is not None and node.parent.parent is not None:
            node = node.parent
        return node.parent.label if node.parent is not None else "", node.label

    def likeness(self):
        """Equal for places as deep whose last labels differ in numbers and keys only: a list of each layer."""
        return self.depth, "[" if self.label.startswith("[") else DIGITS.sub("", self.label)

    def containers(self):
        """The containers on the path, innermost first."""
        node = self
        while node is not None:
            if node.kind in CONTAINERS:
                yield node
            node = node.parent

    def chain(self):
        """The attribute, or variable of a closure, by which objects on the path refer to one another, and how often; the path ends behind
        the first one: "__main__.newest.previous…"."""
        nodes, node = [], self
        while node is not None:
            if node.label.startswith((".", " closure ")) and node.label not in PARTS:
                nodes.append(node)
            node = node.parent
        label, times = collections.Counter(n.label for n in nodes).most_common(1)[0] if nodes else ("", 0)
        first = next((n for n in reversed(nodes) if n.label == label), self)
        return first.path() + "…", times

    def single(self):
        """Path, kind and items of a place that is no container's."""
        node = self
        while node.parent is not None and not node.label:
            node = node.parent
        return node.path(), node.kind if node.kind in ("attribute", "closure") else "variable", 0


class Votes:
    """Where the objects of one site were found."""

    def __init__(self):
        self.total, self.loose, self.containers, self.single, self.deepest = 0, 0, {}, None, None
        self.place = None  # of the holder
        self.depths = set()  # in which they were found
        self.named = {}  # by id of a place near a name: how many were found there, and the place

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
        """The innermost container that holds nearly all of those that stay: of a list of lists the outer one. What variables
        hold beside it is of the step that runs. Or several that are alike,
        of which the longest is named. Or the chain of objects that does, as a linked list or exceptions with their
        causes. Its path, kind and items, and the containers' nodes, of which there are none where none was found."""
        best = self.best(self.containers, stay) or self.best(self.elsewhere(), stay)
        if not best:
            path, links = self.deepest.chain()
            if links >= LINKS and (links >= self.total / 2 or len(self.depths) >= links):  # each has one, or several
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

    def elsewhere(self):
        """The containers, with what variables have that is in one, too: of models in a list, the one that trains."""
        table = {i: [n, c] for i, (n, c) in self.containers.items()}
        for n, node in self.named.values():
            while node is not None and node.other is None:
                node = node.parent
            for c in node.other.containers() if node else ():
                if c.kind != "tuple":
                    table.setdefault(id(c), [0, c])[0] += n
        return table

    def best(self, containers, stay):
        """The nodes of the container that holds enough, or of those that are alike."""
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
                continue  # a module's fields, of which one is replaced
            best = nodes
        return best
