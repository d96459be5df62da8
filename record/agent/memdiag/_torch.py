"""PyTorch: steps from its optimizers, and on the CPU the stacks that allocate tensor storages.

A dispatch mode sees every operator, and keeps a weak pointer to each new storage. It is on for some steps
only: for all while its budget lasts, then for one in so many. What the others made is counted by a census,
or, where no tensor of the program's has it, stood for by what is born in a recorded step.
"""

import _thread
import functools
import math
import sys
import time

from . import _threads
from ._elsewhere import Elsewhere
from ._leave import leave
from ._mode import mode_class
from ._price import Pace, Price
from ._storages import Storages
from ._units import Units

# What the mode may cost before the first step, or look by the clock: a model takes some thousands of operators to make, and a program
# without steps has as many in each second.
BEFORE = 0.15
# A unit is watched up to so many times the operators of the shortest one, or longer while its budget lasts: a
# reinforcement learner makes hundreds of rounds alike before it takes a step, and many steps then.
LONG = 16
# The file and the function of Python's own whose frames are left out of the tracebacks of imports.
IMPORTLIB = "<frozen importlib._bootstrap>", "_call_with_frames_removed"


class Torch(Units, Storages):
    def __init__(self, agent):
        self.agent = agent
        self.module = None
        self.mode = None
        self.price = None  # of operators under the mode
        self.cuda = None
        self.elsewhere = Elsewhere()
        self.since_import = math.inf  # the time at which PyTorch had been imported
        self.saved = ""
        self.works = False  # it makes more operators before the first step than to make a model takes
        Storages.__init__(self)
        self.fresh()

    def fresh(self):
        """Nothing is known of this process yet."""
        self.forget()
        self.begin_units()
        self.thread = None  # in which the mode is on, of those whose steps count the latest
        self.skip = 0  # steps at whose end nothing is to be done
        self.aside = False  # the mode, for as long as an optimizer steps
        # Of a program that uses a GPU; and the turn in which the unit began, when, and what the agent had taken then.
        self.pace, self.paced = None, (0, 0.0, 0.0)
        # Ids of optimizers: the one whose steps count, how often others stepped since it did, and those
        # that ever did so between two of its steps.
        self.primary, self.others, self.beside = None, {}, set()

    def wake(self):
        """In a forked child that trains."""
        self.fresh()
        self.since, self.older = 0, None
        if self.mode is not None:
            type(self.mode).stopped = False
        if self.cuda is not None:
            self.cuda = type(self.cuda)(self.agent, self.module)

    # Start: when the program has imported torch.

    def start(self):
        if self.agent.attached is not None and "torch" in sys.modules:
            self.imported(sys.modules["torch"])
            self.since, self.older = 0, None  # what there is now nobody has seen made
        elif "torch" not in sys.modules:
            self.agent.find(Finder(self))

    def imported(self, torch):
        self.module, self.since_import = torch, time.monotonic()
        if self.agent.intervention is not None:
            self.agent.intervention.imported(torch)
        self.agent.heap.start()
        version = tuple(int("".join(c for c in p if c.isdigit()) or 0) for p in torch.__version__.split("+")[0].split(".")[:2])
        self.version = str(torch.__version__)
        self.watch_steps(torch, version)
        self.agent.losses.watch(torch)
        # That it was built for CUDA is all that may be asked: to count GPUs starts the driver, after which
        # no forked child can use it, and ends the program's time to choose among them.
        self.accelerate()
        if version < (2, 1):
            self.agent.blind("cpu", "PyTorch %s: tensors on the CPU are not recorded before 2.1, because recording breaks some operators there" % self.version)
        else:
            self.mode = mode_class(torch, self)()
            self.weak = torch.UntypedStorage
            self.modes, self.mode_at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
            included, python = torch._C._dispatch_tls_is_dispatch_key_included, torch._C.DispatchKey.Python
            self.reached = lambda: included(python)
            self.watch_phases(torch)
            self.saved = self.saved_names(torch)
            _threads.Threads(self).start()
            if self.agent.attached is None:  # else the program may be within an operator; it is on from the next step on
                self.on(1)

    def accelerate(self):
        """Takes note of an accelerator that records its allocations, which an extension may bring after PyTorch's import."""
        self.elsewhere.leave_out(self.module)
        if self.cuda is None and len(self.elsewhere.left_out) > 1:
            from . import _cuda

            self.cuda = _cuda.Cuda(self.agent, self.module)

    def saved_names(self, torch):
        """How the names of what a node of autograd's graph has saved begin, of what may be read without calling a hook of
        the program's that packed it: checkpoint's computes the forward pass anew."""
        autograd = torch._C._autograd
        if hasattr(autograd.SavedTensor, "data"):
            return "_raw_saved_"
        push = autograd._push_saved_tensors_default_hooks

        def pushed(*hooks):
            self.saved = ""
            return push(*hooks)

        self.agent.replace(autograd, "_push_saved_tensors_default_hooks", pushed)
        return "_saved_"

    def watch_steps(self, torch, version):
        agent = self.agent

        def before(optimizer, args, kwargs):
            if self.thread is not None and len(args) == 1 and not kwargs:  # a closure makes tensors
                agent.guarded("step", self.put_aside, optimizer)

        def after(optimizer, *_):
            if self.skip > 0 and id(optimizer) == self.primary and not self.others and (self.cuda is None or not self.cuda.begins()):
                self.skip -= 1
                self.turn += 1
                self.train.pass_by()
                agent.step += 1
                if self.cuda is not None:
                    self.cuda.passes(agent.step)
                return
            if agent.asleep:
                agent.wake()
            if self.aside:
                self.take_back()
            agent.guarded("step", self.optimizer_stepped, optimizer)

        if version >= (2, 0):
            from torch.optim import optimizer

            agent.undo.append(optimizer.register_optimizer_step_post_hook(after).remove)
            self.step_hooks = getattr(optimizer, "_global_optimizer_pre_hooks", None)
            if self.step_hooks is not None:  # else the hooks of the program's are not known
                agent.undo.append(optimizer.register_optimizer_step_pre_hook(before).remove)
        else:  # the empty method that 1.12 and 1.13 call after every step
            agent.replace(torch.optim.Optimizer, "_optimizer_step_code", after)

    def watch_phases(self, torch):
        agent, original = self.agent, torch.nn.Module.eval

        def eval(self_):
            agent.guarded("eval", self.evaluates)
            return original(self_)

        agent.replace(torch.nn.Module, "eval", functools.update_wrapper(eval, original))  # pickled by its name

    def backward(self):
        """The program calls backward, two frames above."""
        if self.cuda is not None and self.cuda.recording:
            self.agent.guarded("backward", self.cuda.backward.called, sys._getframe(2))

    def optimizer_stepped(self, optimizer):
        """Counts the steps of one optimizer among several: the one that was first, as long as it steps.
        One that was never seen beside it, and steps twice on its own, takes over at once: a new training
        has begun. The steps of another one must be more."""
        self.categories.stepped(optimizer)
        which = id(optimizer)
        if self.primary in (None, which):
            self.beside.update(self.others)
            self.others.clear()
        else:
            self.others[which] = self.others.get(which, 0) + 1
            if self.others[which] < (16 if which in self.beside else 2):
                return
            self.others.clear()
            self.beside.clear()
        self.primary = which
        self.agent.stepped()

    def put_aside(self, optimizer):
        """Most operators of a step are the optimizer's. One of PyTorch's own makes no tensor that stays, once it
        has a state for each parameter; but what the program hangs into it may."""
        if (type(optimizer).__module__.startswith("torch.optim.") and len(self.step_hooks) == 1
                and not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
                and len(optimizer.state) == sum(len(g["params"]) for g in optimizer.param_groups)
                and self.thread == _thread.get_ident() and self.modes() == 1 and self.mode_at(0) is self.mode):
            self.mode.__exit__(None, None, None)
            self.aside = True

    def take_back(self):
        self.aside = False
        if self.modes() == 0:
            self.mode.__enter__()

    def begin_anew(self):
        """What was spent before the first step is forgotten."""
        if self.mode is not None:
            self.mode.ops = 0
        self.stretch = 0.0
        for sampler in self.train, self.evaluation, self.clock:
            sampler.spent = sampler.cost = 0.0

    # The mode, and what ends a unit.

    def boundary(self, step):
        self.bound_gpu()
        if self.mode is None:
            return
        self.evaluated = False
        self.take_turn()

    def bound_gpu(self):
        """Begins to record a GPU that the program has begun to use. The mode has little to see then."""
        if self.cuda is None:
            self.accelerate()
        elif self.cuda.boundary() and self.pace is None:
            self.pace = Pace()
            for sampler in self.train, self.evaluation, self.clock:
                sampler.spare()

    def seen(self):
        """Whether there is anything to take a snapshot of."""
        return bool(self.table) or self.cuda is not None and (self.cuda.recording or self.cuda.begins())

    def tick(self):
        """Without steps there are units by the clock. Among steps, one that takes long may cost too much."""
        if self.agent.ticker.acts():
            return  # a mode is one thread's
        self.bound_gpu()
        if self.mode is None:
            return
        if not self.agent.stepping:
            self.take_turn()
        elif self.thread is not None:
            self.settle()
            if not self.unit.affords(self.agent.elapsed()):
                self.off()

    def dispatches(self):
        """Whether an operator is under way in this thread: for as long, PyTorch has put the mode aside."""
        return self.thread == _thread.get_ident() and self.modes() == 0

    def on(self, weight):
        self.mode.weight, self.mode.paused, self.mode.limit = weight, False, sys.maxsize
        if self.dispatches():
            return
        n = self.modes()
        if n == 1 and self.ours(0) and self.mode_at(0) is not self.mode:
            self.exit(self.mode_at(0))  # of a thread, which trains
            n = 0
        # Below a mode of the program's: it would leave ours when it means to leave its own.
        if n > 0 and self.mode_at(n - 1) is not self.mode:
            return
        if n > 0 and not self.reached():
            self.exit(self.mode)  # it was entered in inference_mode, whose end has cut it off
            n = 0
        if self.price is None:
            self.price = Price(self)
            self.sweep_young()
        if not self.agent.step and not self.agent.ticks:
            self.mode.watcher, self.mode.limit = self, int(BEFORE / self.price.near)
        elif self.unit is self.train and self.shortest < math.inf:
            left = self.train.left(self.begun) / self.price.near
            self.mode.watcher, self.mode.limit = self, max(LONG * self.shortest, int(left))
        self.thread = self.mode.thread = _thread.get_ident()
        if n == 0:
            self.mode.__enter__()
            self.mode.ops = 0

    def off(self):
        """Only in its own thread the mode can be left: where steps come from another one than torch was
        imported in, it stays on in that. And not in inference_mode, whose end brings back that operators
        look for a mode: without one, each of them would fail. Nor where we have interrupted the program: an operator may
        have seen that there is a mode, and go on to look for it."""
        if self.agent.interrupting and self.thread == _thread.get_ident():
            self.mode.paused, self.mode.limit, self.mode.watcher = True, 0, self
            return
        n = self.modes() if self.mode is not None else 0
        if n == 0 or not self.ours(n - 1):
            return
        mode = self.mode_at(n - 1)
        if self.module.is_inference_mode_enabled():
            mode.paused = True
        else:
            self.exit(mode)

    def exhausted(self, mode, frame):
        if not mode.paused:
            mode.paused = self.works = True
            self.leaves_out()
            if self.agent.stepping:
                self.charge(self.costs(self.price.of(mode.ops, self.agent.elapsed() - self.begun)))
                mode.ops = 0
        leave(self, mode, frame)

    def exit(self, mode):
        mode.__exit__(None, None, None)
        if self.thread == _thread.get_ident():
            self.thread = None

    def ours(self, place):
        return type(self.mode_at(place)) is type(self.mode)

    def recalibrate(self):
        """Everything costs more from now on."""
        if self.mode is not None:
            self.off()
            self.price = None

    def stop(self):
        self.skip = 0
        if self.mode is not None:
            type(self.mode).stopped = True
            self.off()
        self.release()
        if self.cuda is not None:
            self.cuda.stop()

    def finish(self):
        self.off()
        if self.cuda is not None:
            self.cuda.finish()

    def about(self):
        if self.module is None:
            return {}
        return {"torch": self.version, "sampled": self.reach()}


class Finder:
    """Calls us when torch has been imported, and is otherwise not there."""

    def __init__(self, source):
        self.source = source

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        import importlib.machinery

        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        loader, source = spec.loader, self.source
        original = loader.exec_module

        def exec_module(module):
            source.agent.guarded("import torch", source.agent.heap.untrace)
            original(module)
            asleep = source.agent.asleep
            if asleep:
                source.agent.wake()
            source.agent.guarded("import torch", source.imported, module)
            if asleep:
                source.agent.sleep()  # until it trains, or grows

        # As Python leaves the frames of its own importing out of tracebacks, so it does with this one.
        exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORTLIB[0], co_name=IMPORTLIB[1])
        loader.exec_module = exec_module
        return spec
