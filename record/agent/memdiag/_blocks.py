"""The live blocks of an allocator's snapshot: which line made the block in which a tensor's memory lies."""

import bisect
import collections
import itertools

from ._backward import HERE, alone

# A site grows where so many looks found more than ever before, or so many times the bytes of the first; so many are looked for.
RISES, LARGER, SITES = 4, 2, 12


class Blocks:
    def __init__(self):
        self.numbers = {}  # by frames: the number of a site
        self.texts = []  # by number
        self.first, self.most, self.rises = {}, {}, collections.Counter()  # of its bytes, by site
        self.before = {}  # by address: the site, at the look before
        self.starts, self.ends, self.sites = [], [], []  # of this look, by address
        self.sizes = collections.Counter()  # of this look, by site
        self.host = 0  # segments of pinned memory
        self.workspace, self.workspaces = 0, ()  # bytes that a library is given to work in; and the addresses of such blocks without a stack

    def look(self, segments, host=()):
        """Takes the blocks of GPUs, and those of pinned memory, of a snapshot."""
        self.host, self.workspaces = len(host), []
        self.before = dict(zip(self.starts, self.sites))
        rows, alike = [], {}
        for segment in itertools.chain(segments, host):
            for address, block in placed(segment):
                if block["state"] == "active_allocated":
                    frames = stack(block)
                    if alone(frames) and block.get("requested_size") == self.workspace:
                        self.workspaces.append(address)
                    # Frames are objects of their own, which stacks share.
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
        """The blocks of the largest sites that grow, {address: site}: those that were there at the look before, since what
        is new the step that runs has; or else all."""
        sites = [s for s, n in self.sizes.items() if self.rises[s] >= RISES or n > LARGER * self.first[s]]
        sites = set(sorted(sites, key=self.sizes.get, reverse=True)[:SITES])
        blocks = [(a, s) for a, s in zip(self.starts, self.sites) if s in sites]
        old = {a: s for a, s in blocks if self.before.get(a) == s}
        lasting = set(old.values())
        return old | {a: s for a, s in blocks if s not in lasting}

    def start(self, pointer):
        """The address of the block in which a pointer lies; None for none."""
        i = bisect.bisect_right(self.starts, pointer) - 1
        return self.starts[i] if i >= 0 and pointer < self.ends[i] else None

    def frames(self, pointer):
        """The frames of the stack that made the block in which a pointer lies, as triples: function, file, line; None for none."""
        start = self.start(pointer)
        if start is None:
            return None
        return [(function, file, line) for file, line, function in self.texts[self.sites[bisect.bisect_left(self.starts, start)]]]

    def one(self, site):
        """The address of a block of a site; None where it has none any more."""
        return self.starts[self.sites.index(site)] if self.sizes.get(site) else None


def placed(segment):
    """A segment's blocks with their addresses, which PyTorch before 2.1 does not tell."""
    address = segment["address"]
    for block in segment["blocks"]:
        address = block.get("address", address)
        yield address, block
        address += block["size"]


def stack(block):
    """The frames of a block: before 2.1 those of the newest of its history."""
    if "frames" in block:
        return block["frames"]
    history = block.get("history")
    return history[0].get("frames", ()) if history else ()
