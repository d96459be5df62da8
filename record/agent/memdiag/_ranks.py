"""Which process of a run records what: the process of a rank, and those beside it."""

import sys

from . import _claims
from ._real import os, time
from ._role import below, helps, role, started, title

# Variables that give a rank, and how many digits it may have. memdiag reads them, too.
RANKS, RANK_DIGITS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"), 9


def is_rank(value):
    return value.isascii() and value.isdigit() and len(value) <= RANK_DIGITS


def rank_variable():
    """The variable that gives this process its rank, such as "RANK=0"; "" for none."""
    return next(("%s=%s" % (name, value) for name in RANKS if is_rank(value := os.environ.get(name, ""))), "")


class Ranks:
    """The part of the agent that knows the role of this process in its run."""

    def __init__(self):
        self.owner = {}  # by kind of snapshot, "step" or "tick": whether this process records it
        self.rank = self.inherited = None  # inherited: the rank of the process that forked this one
        self.gone = False  # another process has taken over from this one
        self.number = 0  # of a process that is recorded beside the one of its rank; 0 for the one of the rank

    def owns(self, kind):
        """Whether this process is the one that records its rank. One command may run several Python processes: launchers, loader workers,
        helpers. The first that comes to a snapshot records. But a process that counts steps takes over from those with snapshots by the
        clock, and one with a rank from those without, such as launchers."""
        if kind not in self.owner:
            self.rank = self.find_rank()
            self.owner[kind] = (kind == "step" or self.attached is not None or not self.follows()) and self.claim(self.claim_name(kind))
            if self.owner[kind] and (kind == "step" or self.rank is not None):
                self.drop_ticks()
        if kind == "tick" and self.owner[kind] and self.replaced():
            self.owner[kind], self.gone = False, True
            if not self.owner.get("step"):
                self.drop_ticks()
        return self.owner[kind]

    def follows(self):
        """Whether this process, by the clock, is recorded beside the process that started it, because it has no other rank."""
        reports, given = os.path.join(self.dir, self.settings["report"]), rank_variable()
        return started() or self.rank in (None, self.inherited) and below(reports) or bool(given) and below(reports, given)

    def replaced(self):
        """Whether another process has taken over from this one, which only has snapshots by the clock."""
        if os.path.exists(os.path.join(self.dir, self.claim_name("step"))):
            return True
        # Only launchers list the folder: with many ranks, it has tens of thousands of names.
        return self.rank is None and any(name.startswith(".claim_") and "_rank" in name for name in os.listdir(self.dir))

    def find_rank(self):
        """The rank of this process among those that train together; None if it is alone."""
        dist = sys.modules.get("torch.distributed") if self.torch.module else None
        try:
            if dist is not None and dist.is_available() and dist.is_initialized():
                return dist.get_rank()
        except Exception:
            pass  # PyTorch is being imported
        for name in RANKS:
            value = os.environ.get(name, "")
            if is_rank(value):
                return int(value)
            if value:
                self.note("%s=%s is not a rank (digits only, at most %d); it is ignored" % (name, value, RANK_DIGITS))
        task = self.settings["rank"]  # memdiag's own rank, or -1
        return task if task >= 0 else None

    def role(self):
        """The role of this process, with its rank. If nothing named it, this is the name of its script."""
        name = role() or title() or os.path.basename(sys.argv[0])
        rank = self.find_rank()
        return name if rank is None else "%s of rank %d" % (name, rank)

    def claim_name(self, kind):
        return ".claim_%s%s" % (kind, self.suffix())

    def beside(self):
        """Whether this process is recorded beside the one of its rank: a worker of a loader or a pool, or one that trains after another
        process has taken over."""
        if not self.number and (self.step or not self.gone) and not helps():
            path = _claims.beside(self.dir, self.since_begin())
            while path is not None and not _claims.claim(path):  # another process claimed it first
                path = _claims.beside(self.dir, self.since_begin())
            self.number = int(path.rpartition("child")[2]) if path else 0
        return self.number > 0

    def suffix(self):
        return "" if self.rank is None else "_rank%d" % self.rank

    def claim(self, name):
        return _claims.claim(os.path.join(self.dir, name))

    def since_begin(self):
        """Seconds since memdiag's command began."""
        return max(0.0, time.time() - self.settings.get("begun", 0))
