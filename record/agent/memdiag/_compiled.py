"""torch.compile calls a function of its own for each Python function that begins within a compiled one, to compile it, too. It must leave
out the agent's, which signals and hooks call there.

Before PyTorch 2.10 it also compiles a function anew at each call below a dispatch mode, since its guards compare which dispatch keys are on.
So the mode is left while a compiled function runs. The census counts what that allocates.
"""

import sys
from _thread import get_ident

# The first version whose guards leave out the keys of modes.
FIXED = 2, 10
# The file with the function through which PyTorch calls a compiled one.
ENTRANCE = "torch/_dynamo/eval_frame.py"


def skip(torch, *functions):
    """Makes torch.compile leave out functions, but not what they call."""
    c = getattr(getattr(getattr(torch, "_C", None), "_dynamo", None), "eval_frame", None)
    for f in functions:
        if hasattr(c, "skip_code"):
            c.skip_code(f.__code__)
        elif hasattr(c, "set_code_exec_strategy"):  # from PyTorch 2.6 on
            c.set_code_exec_strategy(f.__code__, c._FrameExecStrategy(c._FrameAction.SKIP, c._FrameAction.DEFAULT))


def runs(frame):
    """Whether a frame is within a function of torch.compile."""
    if not compiles():
        return False
    while frame is not None and not frame.f_code.co_filename.endswith(ENTRANCE):
        frame = frame.f_back
    return frame is not None


def compiles():
    """Whether torch.compile has compiled anything."""
    return bool(getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COUNTER", 0))


def compiling(torch):
    """A function that torch.compile, while it traces it, takes for True, so that it need not trace what the program does not have."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)  # from PyTorch 2.2 on


def apart(agent, torch, f):
    """A function that calls f, which no torch.compile traces. A compiled function that calls it is cut into two graphs, or, where it must be one
    graph, leaves the call out."""
    traces = compiling(torch)

    def call(*args):
        prior = agent.switch(None)
        try:
            f(*args)
        finally:
            agent.switch(prior)

    def traced(*args):
        if not (traces() and in_one_graph()):
            call(*args)

    call._torchdynamo_disable = True
    skip(torch, call, traced)
    return traced


def in_one_graph():
    """Whether torch.compile must not cut what it compiles now. It calls this function while it traces a call of it."""
    translator = getattr(sys.modules.get("torch._dynamo.symbolic_convert"), "InstructionTranslator", None)
    try:
        now = translator.current_tx()
    except AttributeError:  # another version of PyTorch; or another thread compiles, and not this one
        now = None
    return bool(getattr(now, "one_graph", False) or getattr(now, "error_on_graph_break", False))


in_one_graph._dynamo_marked_constant = True


def ignore(callback):
    """What set_eval_frame is without PyTorch."""


class Compiled:
    """Leaves the mode and enters it again."""

    def __init__(self, source):
        self.source = source
        self.left = {}  # by thread: the mode that was left, and how many modes of the program stayed

    def watch(self, torch):
        """Watches the function by which torch.compile begins, with something to call, and ends."""
        c = torch._C._dynamo.eval_frame
        original = c.set_eval_frame

        def set_eval_frame(callback):
            if callable(callback):
                self.leave()
            else:
                self.enter()
            return original(callback)

        skip(torch, set_eval_frame, Compiled.leave, Compiled.enter)
        for module in c, sys.modules.get("torch._dynamo.eval_frame"):
            if getattr(module, "set_eval_frame", None) is original:
                self.source.agent.replace(module, "set_eval_frame", set_eval_frame)

    def leave(self):
        mode = self.source.top()
        if mode is not None:
            mode.__exit__()
            self.left[get_ident()] = mode, self.source.modes()

    def enter(self):
        mode, n = self.left.pop(get_ident(), (None, 0))
        if mode is not None and self.source.modes() == n:
            mode.__enter__()
