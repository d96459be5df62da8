"""What PyTorch's record of a GPU's allocator takes of the process's heap: a ring of events, which grows until it is full, and the
stack of each allocation in it. It is ours, not the program's growth."""

# Bytes of an event in the ring, whose room doubles as it fills; of the step stamped on one; of a stack; and of each of its frames.
# The first and third were measured with PyTorch 2.11 on an H200, where the heap was watched as the ring filled.
EVENT, STAMP, STACK, FRAME = 136, 33, 200, 16
# Bytes beside the ring of an event, before a snapshot has shown any.
EACH = 200


class Ring:
    def __init__(self, most):
        self.most, self.each, self.before = most, EACH, None

    def bytes(self, stats):
        """Bytes that it takes on all GPUs, whose counts of allocations and frees are given."""
        counts = [sum(s["allocation"]["all"][k] for k in ("allocated", "freed")) for s in stats if "allocation" in s]
        if self.before is None:
            self.before = counts
        total = 0
        for n, before in zip(counts, self.before):
            n = min(max(n - before, 0), self.most)
            total += EVENT * (1 << max(n - 1, 0).bit_length()) + self.each * n
        return round(total)

    def learn(self, traces):
        """Takes from a record how large its events are."""
        n = stamped = allocated = deep = 0
        for trace in traces:
            n += len(trace)
            for e in trace:
                stamped += bool(e.get("user_metadata"))
                if e["action"] == "alloc":
                    allocated += 1
                    deep += len(e["frames"])
        if n:
            self.each = (STAMP * stamped + STACK * allocated + FRAME * deep) / n
