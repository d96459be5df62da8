"""What takes GPU memory beside PyTorch's allocator, as far as it is known: how many communicators there are, and the buffers in NCCL's own
log, if the program has NCCL write one (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=ALLOC, NCCL_DEBUG_FILE)."""

import re
import socket
import sys

from ._real import open, os

# An allocation on a GPU, as NCCL 2.18 to 2.30 log it: the GPU, bytes, and address. They do not log frees.
ALLOCATED = re.compile(rb"\[(\d{1,4})\] NCCL INFO .*\b(?:CUMEM Alloc|Cuda Calloc|Cuda CallocAsync|Cuda Alloc|Persistent cudaMallocAsync work buf) Size (\d{1,15}) pointer (0x[0-9a-f]{1,16})")
# Bytes of the log that are read at one snapshot, and the highest GPU number that is believed.
MOST, DEVICES = 1 << 20, 1024


def number():
    """How many groups of processes use NCCL; 0 if that is unknown. Each creates a communicator when it is first used."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    try:
        return sum("nccl" in str(backends) for backends in list(c10d._world.pg_backend_config.values()))
    except AttributeError:
        return 0  # not imported, or another version


class Log:
    """NCCL's log of this process."""

    def __init__(self):
        self.path, self.at, self.rest, self.sizes = None, 0, b"", {}  # sizes: bytes by GPU and address
        name = os.environ.get("NCCL_DEBUG_FILE", "")
        if name and "%" in name:
            host = socket.gethostname().split(".")[0]
            name = re.sub("%[hp]", lambda m: host if m[0] == "%h" else str(os.getpid()), name)
        if name and re.search(r"(?i)\b(ALLOC|ALL)\b", os.environ.get("NCCL_DEBUG_SUBSYS", "")):
            self.path = name

    def read(self):
        """Bytes that NCCL has allocated, by GPU. An address that it has used again counts once."""
        if self.path is not None:
            try:
                with open(self.path, "rb") as f:
                    f.seek(self.at)
                    text = self.rest + f.read(MOST)
                    self.at = f.tell()
            except OSError:
                text = b""  # there is no log yet
            lines, _, self.rest = text.rpartition(b"\n")
            self.rest = self.rest[-1024:]
            for device, size, address in ALLOCATED.findall(lines):
                if int(device) < DEVICES:
                    self.sizes[int(device), address] = int(size)
        total = {}
        for (device, _), size in self.sizes.items():
            total[device] = total.get(device, 0) + size
        return total

    def figures(self):
        """Entries of a snapshot's header."""
        out, n, total = {}, number(), self.read()
        if n:
            out["communicators"] = n
        if total:
            out["nccl"] = ",".join(str(total.get(i, 0)) for i in range(max(total) + 1))
        return out
