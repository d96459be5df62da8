"""The live blocks in an allocator's snapshot, to find which line allocated the block in which a tensor lies."""

import bisect
import collections
import itertools

from ._backward import HERE, alone

# A site, an allocation stack, grows if RISES looks found more bytes than ever before, or LARGER times the bytes of the first look. At most
# SITES are looked for.
RISES, LARGER, SITES = 4, 2, 12


class Blocks:
    def __init__(self):
        self.numbers = {}  # by frames: the number of a site
        self.texts = []  # frames of sites, by number
        self.first, self.most, self.rises = {}, {}, collections.Counter()  # by site: its bytes at first, its most bytes, and how often they rose
        self.before = {}  # by address: the site, at the previous look
        self.starts, self.ends, self.sites = [], [], []  # of this look, in the order of addresses
        self.sizes = collections.Counter()  # of this look, by site
        self.host = 0  # number of segments of pinned memory
        self.workspace, self.workspaces = 0, ()  # bytes of a library's workspace; addresses of blocks with this size and no stack

    def look(self, segments, host=()):
        """Takes the blocks of GPUs, and of pinned memory, from a snapshot."""
        self.host, self.workspaces = len(host), []
        self.before = dict(zip(self.starts, self.sites))
        rows, alike = [], {}
        for segment in itertools.chain(segments, host):
            for address, block in placed(segment):
                if block["state"] == "active_allocated":
                    frames = stack(block)
                    if alone(frames) and block.get("requested_size") == self.workspace:
                        self.workspaces.append(address)
                    # Each frame is one object, which stacks share.
                    key = tuple(map(id, frames))
                    site = alike.get(key)
                    if site is None:
                        text = tuple((f["filename"], f["line"], f["name"]) for f in frames if not f["filename"].startswith(HERE))
                        site = alike[key] = self.numbers.setdefault(text, len(self.texts))
                        if site == len(self.texts):
                            self.texts.append(text)
                    rows.append((address, address + block["size"], site))
        rows.sort()
        self.starts, self.ends, self.sites = map(list, zip(*rows)) if rows else ([], [], [])
        self.sizes.clear()
        for start, end, site in rows:
            self.sizes[site] += end - start
        for site, size in self.sizes.items():
            self.first.setdefault(site, size)
            self.rises[site] += size > self.most.get(site, size)
            self.most[site] = max(size, self.most.get(site, size))

    def growing(self):
        """The blocks of the largest growing sites, {address: site}. Of each site, these are the blocks of the previous look, since new ones
        may belong to the running step; if there are none, all its blocks."""
        sites = [s for s, n in self.sizes.items() if self.rises[s] >= RISES or n > LARGER * self.first[s]]
        sites = set(sorted(sites, key=self.sizes.get, reverse=True)[:SITES])
        blocks = [(a, s) for a, s in zip(self.starts, self.sites) if s in sites]
        old = {a: s for a, s in blocks if self.before.get(a) == s}
        lasting = set(old.values())
        return old | {a: s for a, s in blocks if s not in lasting}

    def start(self, pointer):
        """The address of the block that contains a pointer, or None."""
        i = bisect.bisect_right(self.starts, pointer) - 1
        return self.starts[i] if i >= 0 and pointer < self.ends[i] else None

    def frames(self, pointer):
        """The frames of the stack that allocated the block with a pointer, as triples of function, file and line; None if there is no
        block."""
        start = self.start(pointer)
        if start is None:
            return None
        return [(function, file, line) for file, line, function in self.texts[self.sites[bisect.bisect_left(self.starts, start)]]]

    def one(self, site):
        """The address of a block of a site; None if it has none any more."""
        return self.starts[self.sites.index(site)] if self.sizes.get(site) else None


def placed(segment):
    """A segment's blocks with their addresses, which PyTorch before 2.1 does not give."""
    address = segment["address"]
    for block in segment["blocks"]:
        address = block.get("address", address)
        yield address, block
        address += block["size"]


def stack(block):
    """The frames of a block; before 2.1, the frames of its newest history entry."""
    if "frames" in block:
        return block["frames"]
    history = block.get("history")
    return history[0].get("frames", ()) if history else ()
