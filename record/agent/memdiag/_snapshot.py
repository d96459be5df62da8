"""The contents of a snapshot, which sources fill in."""

from ._watch import WRAPPER


class Stacks:
    """The frames and stacks of one snapshot. Each is stored once. Stack 0 is "no stack"."""

    def __init__(self):
        self.frames, self.stacks = [], [[]]
        self._frame, self._stack = {}, {}

    def known(self, key):
        """The number of a stack that was added, or None."""
        return self._stack.get(key)

    def add(self, key, frames):
        """Returns the number of the stack with a hashable key. frames() returns its frames, innermost first. Frames of our wrappers are
        left out."""
        n = self._stack.get(key)
        if n is None:
            ids = []
            for f in frames():
                if f[1].endswith(WRAPPER):
                    continue
                i = self._frame.get(f)
                if i is None:
                    i = self._frame[f] = len(self.frames)
                    self.frames.append(f)
                ids.append(i)
            n = self._stack[key] = len(self.stacks) if ids else 0
            if ids:
                self.stacks.append(ids)
        return n


class Snapshot:
    """The contents of a snapshot, which sources fill in."""

    def __init__(self):
        self.stacks = Stacks()
        self.devices, self.notes, self.holders, self.at, self.anew, self.native = [], [], [], [], [], []
        self.blocks = {"device": [], "address": [], "size": [], "stack": [], "birth": [], "count": [], "category": []}
        self.categories = {}  # by address: categories of blocks on GPUs, which are not in self.blocks
        self.producer = "Python"

    def device(self, kind, name, space=0, limit=None, index=0, **meters):
        """Adds a device. space is a number that stays the same as long as addresses on the device keep their meaning."""
        self.devices.append({"kind": kind, "index": index, "name": name, "space": space, "limit": limit, "meters": meters})
        return len(self.devices) - 1

    def allocated(self):
        """Adds up the sizes of the blocks so far, by device."""
        totals = dict.fromkeys(self.blocks["device"], 0)
        for device, size in zip(self.blocks["device"], self.blocks["size"]):
            totals[device] += size
        for device, meters in enumerate(d["meters"] for d in self.devices):
            meters["allocated"] = totals.get(device, 0)

    def add(self, device, address, size, stack, birth, count, category=0):
        """Adds a row: a block, or, if count is more than 1, so many blocks with this size in total. category is one of _categories, 0 for
        none."""
        b = self.blocks
        b["device"].append(device)
        b["address"].append(address)
        b["size"].append(size)
        b["stack"].append(stack)
        b["birth"].append(birth)
        b["count"].append(count)
        b["category"].append(category)
