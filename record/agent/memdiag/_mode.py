"""The dispatch mode: it sees every operator of PyTorch, and keeps a weak pointer to each storage that an operator allocates.

The pointer later tells whether the storage is alive, and does not keep its memory. A mode costs some microseconds per operator.
"""

import _thread
import sys

from ._census import lender
from ._compiled import skip
from ._handlers import raised
from ._leave import Leaver, leave
from ._tracing import begin_or_end, profile

# Frames of a stack that are kept, innermost first.
DEPTH = 48
# Whether an operator allocates storages.
NEVER, SOMETIMES, ALWAYS = 0, 1, 2
# Storages that are tracked at the same time, at most.
MOST = 1_000_000


def mode_class(torch, source):
    from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

    tensor, getframe, fresh, ops = torch.Tensor, sys._getframe, {}, {}
    elsewhere = source.elsewhere.of
    overrides, plainly = torch._C._has_torch_function_variadic, torch._C.DisableTorchFunctionSubclass

    class MemdiagMode(TorchDispatchMode):
        stopped = paused = False
        ops, limit = 0, sys.maxsize  # operators that it saw; and how many it may see before it calls its watcher
        watcher = None
        leaver = None  # what waits to leave it
        weight = 1  # how many storages each one that it sees stands for
        thread = None  # the thread that entered it; autograd's threads, which run the backward pass of a GPU, inherit the mode
        supports_higher_order_operators = True

        # PyTorch's own two methods also set flags of the whole process, which modes of several threads mix up.
        def __enter__(self):
            _push_mode(self)
            return self

        def __exit__(self, *_):
            _pop_mode()

        # torch.compile still compiles below this mode, and does not trace it.
        @classmethod
        def is_infra_mode(cls):
            return True

        @classmethod
        def ignore_compile_internals(cls):
            return True

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else every operator would go through a wrapper; skip_code below has the same effect

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            op = ops.get(func)
            if op is None:
                op = ops[func] = getattr(func, "_op", func)  # the function that func calls
            try:
                if overrides(*args):  # without a mode, no subclass would be asked from here on
                    with plainly():
                        out = op(*args, **(kwargs or {}))
                else:
                    out = op(*args, **kwargs) if kwargs else op(*args)
            except BaseException as e:
                e.__traceback__ = e.__traceback__.tb_next  # without this frame: it has tensors that the program frees
                del args, kwargs  # Python 3.10 raises it with this frame
                raise
            self.ops += 1
            if self.ops >= self.limit and self.thread == _thread.get_ident():
                prior = source.agent.switch(None)
                self.watcher.exhausted(self, getframe(1))
                source.agent.switch(prior)
            new = fresh.get(func)
            if new is None:
                new = fresh[func] = makes_storages(func)
            if not new or self.stopped or self.paused:
                return out
            try:
                t = type(out)
                if t is tensor:
                    if (out.is_cpu or elsewhere(out)) and (new is ALWAYS or not shares(out, args)):
                        keep(out, caller(), self.weight, args)
                elif t is tuple or t is list:
                    for x in out:
                        if type(x) is tensor and (x.is_cpu or elsewhere(x)):
                            keep(x, caller(), self.weight, args)
            except NotImplementedError:
                fresh[func] = NEVER  # it returns tensors without a storage: sparse ones
            except Exception as e:
                if raised(e):
                    raise
                MemdiagMode.stopped = True
                source.agent.failed("operator %s" % func, e)
                source.agent.blind("cpu", "tensors on the CPU are not recorded from step %d on, because of an error" % source.agent.step)
            return out

    def caller():
        """The frame that called an operator; None if autograd's thread did."""
        try:
            return getframe(2)
        except ValueError:
            return None

    def keep(t, frame, weight, args):
        storage = t.untyped_storage()
        size = storage.nbytes()
        if type(size) is not int:
            return  # a symbol, from a graph that is being traced
        address = storage._cdata
        table = source.table
        if address in table or len(table) >= MOST:
            return  # while the weak pointer exists, no other storage gets the address
        place = lender(storage)
        if place is None:
            return
        if place:
            source.lent[address] = place
        elif source.lent:
            source.lent.pop(address, None)  # left by a storage that is gone
        source.elsewhere.note(address, t)
        key, f, depth = [], frame, DEPTH
        while f is not None and depth:
            key.append(id(f.f_code))
            key.append(f.f_lasti)
            f = f.f_back
            depth -= 1
        stack = source.number(tuple(key), frame)
        if size > source.largest.get(stack, 0):
            source.grows(stack, size, args)
        storage._weak_ref()
        table[address] = [stack, size, source.agent.step, weight, source.turn]
        source.young.append(address)

    skip(torch, MemdiagMode.__torch_dispatch__, caller, keep, lender, makes_storages, shares, leave, Leaver.wait, Leaver.__call__, profile, begin_or_end, raised, type(source).number,
         type(source).grows, type(source.elsewhere).of, type(source.elsewhere).note)
    return MemdiagMode


def makes_storages(func):
    """Whether an operator returns a tensor that is neither a view nor an argument: NEVER, SOMETIMES or ALWAYS."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return NEVER
    if any(r.alias_info is None for r in schema.returns) or schema.name == "aten::lift_fresh":  # lift_fresh: made from Python's numbers
        return ALWAYS
    if schema.name == "aten::set_" and schema.overload_name.startswith("source_Storage"):
        return ALWAYS  # copy.deepcopy and torch.load make a storage without an operator
    # In inference_mode, contiguous, reshape and to arrive as one operator; elsewhere as a copy and views of it.
    composite = getattr(func, "has_kernel_for_dispatch_key", None)
    return SOMETIMES if composite and composite("CompositeImplicitAutograd") else NEVER


def shares(tensor, args):
    """Whether a tensor has the storage of an argument."""
    address = tensor.untyped_storage()._cdata
    return any(a.untyped_storage()._cdata == address for a in args if isinstance(a, type(tensor)))
