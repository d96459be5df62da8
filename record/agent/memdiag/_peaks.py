"""The peaks of memory that steps reach, with the size of their input, if the program marks that: peaks.csv of a run.

The allocator and the kernel count the highest peak so far. If it rises in a step, that step has reached it, and its peak is exact. The
peaks of other steps are not known. Nothing is reset, since the program may read these counters itself.
"""


from ._budget import Budget
from ._clock import work
from ._heap import highest
from ._marks import number
from ._table import Table

HEADER = b"step,phase,device,batch,length,peak\n"
# What reading the counters may cost: seconds at the start, plus a share of the time. A step after one that was not read has no peak.
ALLOWANCE, SHARE = 0.05, 0.004


class Peaks(Table):
    def __init__(self, agent):
        super().__init__(agent, "peaks", HEADER)

    def fresh(self):
        super().fresh()
        self.batch = self.length = 0  # sizes of the last input; snapshots have them, too
        self.highest = {}  # by device: the peak at the last read
        self.budget = Budget(self.agent, ALLOWANCE, SHARE)

    def told(self, step, batch, length):
        """What has run since the last such mark had an input of this size."""
        self.batch, self.length = (0 if v is None else max(number(self.agent, name, int, v) or 0, 0) for name, v in (("batch", batch), ("length", length)))
        self.look(step)

    def began(self):
        """Another phase has begun. What ran before it, such as an evaluation, does not belong to its steps."""
        self.look(None)

    def look(self, step):
        if self.over:
            return
        if not self.budget.affords():
            self.highest.clear()
            return
        begun = work()
        try:
            self.read(step)
        except Exception as e:
            self.failed(e)
        self.budget.spent += work() - begun

    def read(self, step):
        for device, peak in self.peaks():
            before = self.highest.get(device)
            self.highest[device] = max(peak, before or 0)
            if step is not None and before is not None and peak > before:
                self.add(b"%d,%s,%s,%d,%d,%d\n" % (max(step, 0), named(self.agent.phase), device, self.batch, self.length, peak))

    def peaks(self):
        """The highest peaks so far: of the GPUs that are used, else of the process."""
        cuda = self.agent.torch.cuda
        if cuda is not None and cuda.recording:
            return [(b"%s:%d" % (cuda.gpu.name.encode(), i), cuda.gpu.stats(i)["allocated_bytes"]["all"].get("peak", 0)) for i in range(cuda.gpu.count())]
        return [(b"host:0", peak)] if (peak := highest()) else []


def named(phase):
    """A phase's name as a field of the table."""
    return "".join(c if c.isalnum() else "_" for c in phase or "")[:40].encode("utf-8", "replace")
