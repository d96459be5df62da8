"""The losses that the program passes to backward or to mark, one per line and with all their bits: losses.csv of a run.

They show whether two runs computed the same. A loss is read from its memory, without calling operators of PyTorch. On a GPU, the program
would have to wait for that. So only mark records losses there, except in the runs that memdiag doctor compares.
"""

import struct

from ._census import unasked
from ._compiled import skip
from ._marks import number
from ._table import Table

HEADER = b"step,source,loss\n"
# Each of the first POINTS losses is kept, then every second one of twice as many, every fourth one of four times as many, and so on:
# reading one takes some 10 microseconds.
POINTS = 2_000


class Losses(Table):
    def __init__(self, agent):
        super().__init__(agent, "losses", HEADER)
        self.formats = {}  # by dtype: the format of a number in memory

    def fresh(self):
        super().fresh()
        self.counts = {}  # by source: how many were seen, and how many kept

    def watch(self, torch):
        """Watches for losses that PyTorch starts a backward pass from. PyTorch calls this function to make their gradient. It has returned
        when the backward pass computes, so that no frame of ours is in its stacks."""
        autograd = getattr(torch, "autograd", None)
        original = getattr(autograd, "_make_grads", None)
        if original is None:
            return
        import ctypes  # PyTorch has imported it already

        self.torch, self.tensor, self.string_at = torch, torch.Tensor, ctypes.string_at
        self.formats = {torch.float32: "<f", torch.float64: "<d", torch.float16: "<e", torch.bfloat16: ""}

        def _make_grads(outputs, *args, **kwargs):
            prior = self.agent.switch(None)
            try:
                if not self.over:
                    self.backward(outputs)
                self.agent.torch.backward()
            finally:
                self.agent.switch(prior)
            return original(outputs, *args, **kwargs)

        skip(torch, _make_grads)
        self.agent.replace(autograd, "_make_grads", _make_grads)

    def backward(self, outputs):
        try:
            with unasked(self.torch):
                for t in outputs:
                    if type(t) is self.tensor and (t.is_cpu and address(t) or self.awaits(t)) and t.numel() == 1 and t.dtype in self.formats and self.keeps("backward"):
                        self.take("backward", self.read(t))
        except Exception as e:
            self.failed(e)

    def awaits(self, t):
        """Whether the program may wait for a loss on a GPU. While a CUDA graph is captured, it must not."""
        return self.agent.settings.get("experiment") and t.is_cuda and not self.torch.cuda.is_current_stream_capturing()

    def read(self, t):
        if not t.is_cpu:
            return t.item()
        raw, how = self.string_at(t.data_ptr(), t.element_size()), self.formats[t.dtype]
        return struct.unpack(how, raw)[0] if how else struct.unpack("<f", b"\0\0" + raw)[0]

    def told(self, loss):
        if not self.over and self.keeps("mark") and (loss := number(self.agent, "loss", float, loss)) is not None:
            self.take("mark", loss)

    def keeps(self, source):
        """Whether the current loss is one to keep."""
        seen, kept = self.counts.get(source, (0, 0))
        keeps = seen % (1 << kept // POINTS) == 0
        self.counts[source] = seen + 1, kept + keeps
        return keeps

    def take(self, source, loss):
        self.add(b"%d,%s,%s\n" % (self.agent.step + (source == "backward"), source.encode(), repr(loss).encode()))


def address(t):
    """The address of a tensor's memory; 0 if it has none, as where PyTorch traces or transforms functions. Its size may be a symbol then."""
    try:
        return t.data_ptr()
    except RuntimeError:
        return 0
