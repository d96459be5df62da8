"""How much of the process's heap PyTorch's record of a GPU's allocator takes. The record is a ring of events, which grows until it is full,
and the stack of each allocation in it. This memory is ours, not the program's growth."""

# Bytes of an event in the ring, whose capacity doubles as it fills; of the step stamped on an event; of a stack; and of each of its frames.
# They were measured with PyTorch 2.11 on an H200, from the heap while the ring filled: a stack took 200 bytes in one training and at most
# 370 in another. What is underestimated counts as the program's growth until the ring is full; what is overestimated counts as ours.
EVENT, STAMP, STACK, FRAME = 136, 33, 400, 16
# Bytes of stacks and stamps per event, before a snapshot has shown any.
EACH = 200


class Ring:
    def __init__(self, most):
        self.most, self.each, self.before = most, EACH, None
        self.happened = {}  # by GPU: the most events so far
        self.listed = ()  # by GPU: events in the last record

    def bytes(self, stats, frees):
        """Bytes of the record on all GPUs, from their counts of allocations and frees. A free has frees events. Without counts, the last
        record gives the number of events."""
        counts = [[s["allocation"]["all"][k] for k in ("allocated", "freed")] if "allocation" in s else None for s in stats]
        if self.before is None:
            self.before = counts
        total = 0
        for i, (count, before) in enumerate(zip(counts, self.before)):
            if count is not None and before is not None:
                n = count[0] - before[0] + frees * (count[1] - before[1])
            else:
                n = self.listed[i] if i < len(self.listed) else 0
            n = self.happened[i] = min(max(n, self.happened.get(i, 0)), self.most)  # the program may reset the counts
            total += EVENT * (1 << max(n - 1, 0).bit_length()) + self.each * n
        return round(total)

    def learn(self, traces):
        """Learns from a record how large its events are."""
        self.listed = [len(trace) for trace in traces]
        stamped = allocated = deep = 0
        for trace in traces:
            for e in trace:
                stamped += bool(e.get("user_metadata"))
                if e["action"] == "alloc":
                    allocated += 1
                    deep += len(e.get("frames") or ())
        if any(self.listed):
            self.each = (STAMP * stamped + STACK * allocated + FRAME * deep) / sum(self.listed)
