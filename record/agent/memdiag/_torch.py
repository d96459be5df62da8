"""PyTorch: steps from its optimizers and, on the CPU, the stacks that allocate tensor storages.

A dispatch mode sees every operator, and keeps a weak pointer to each new storage. It is on for all steps while its budget lasts, then for
one step in several. Storages of the other steps are counted by a census. Those that no tensor of the program holds are estimated: storages
of a recorded step stand for them.
"""

import _thread
import functools
import math
import sys

from . import _compiled, _subclasses, _threads
from ._elsewhere import Elsewhere
from ._leave import leave
from ._mode import mode_class
from ._price import Pace, Price
from ._real import time
from ._storages import Storages
from ._units import Units

# What the mode may cost, in seconds, before the first step or look by the clock. Making a model takes some thousands of operators, and a
# program without steps runs as many in each second.
BEFORE = 0.15
# A unit is watched up to so many times the operators of the shortest one, or longer while its budget lasts: a reinforcement learner makes
# hundreds of similar rounds before it takes a step, and then many steps.
LONG = 16
# The file and function by which Python marks its own frames that tracebacks of imports leave out.
IMPORTLIB = "<frozen importlib._bootstrap>", "_call_with_frames_removed"


class Torch(Units, Storages):
    def __init__(self, agent):
        self.agent = agent
        self.module = None
        self.mode = None
        self.price = None  # of an operator under the mode
        self.cuda = None
        self.elsewhere = Elsewhere()
        self.since_import = math.inf  # the time at which the import of PyTorch ended
        self.saved = ""
        self.works = False  # before the first step, it runs more operators than making a model takes
        Storages.__init__(self)
        self.fresh()

    def fresh(self):
        """Forgets everything: nothing is known of this process yet."""
        self.forget()
        self.begin_units()
        self.thread = None  # the thread in which the mode is on; the newest of those whose steps count
        self.skip = 0  # at the end of so many steps there is nothing to do
        self.aside = False  # the mode has been left while an optimizer steps
        self.profiled = lambda: False  # whether a profiler of PyTorch records
        self.refused = 0  # the weight of a unit that began within a backward pass, where the mode could not be entered
        # pace: of a program that uses a GPU, else None. paced: the turn in which the unit began, the time, and what the agent had taken
        # then.
        self.pace, self.paced = None, (0, 0.0, 0.0)
        # By ids: the optimizer whose steps count; how often each other one has stepped since it did; and the optimizers that ever stepped
        # between two of its steps.
        self.primary, self.others, self.beside = None, {}, set()

    def wake(self):
        """Begins in a forked child that trains."""
        self.fresh()
        self.since, self.older = 0, None
        if self.mode is not None:
            type(self.mode).stopped = False
        if self.cuda is not None:
            self.cuda = type(self.cuda)(self.agent, self.module)

    # Start: after the program has imported torch.

    def start(self):
        if self.agent.attached is not None and "torch" in sys.modules:
            self.imported(sys.modules["torch"])
            self.since, self.older = 0, None  # nobody saw how the tensors of now were allocated
        elif "torch" not in sys.modules:
            self.agent.find(Finder(self))

    def imported(self, torch):
        self.module, self.since_import = torch, time.monotonic()
        if self.agent.intervention is not None:
            self.agent.intervention.imported(torch)
        self.agent.heap.start()
        version = tuple(int("".join(c for c in p if c.isdigit()) or 0) for p in torch.__version__.split("+")[0].split(".")[:2])
        self.version = str(torch.__version__)
        # How many functions of torch.func run in this thread; PyTorch 2.2 and later say so.
        self.layers = getattr(getattr(getattr(torch, "_C", None), "_functorch", None), "get_dynamic_layer_stack_depth", int)
        self.watch_steps(torch, version)
        self.agent.losses.watch(torch)
        # Only whether PyTorch was built for CUDA may be asked. Counting GPUs starts the driver: then no forked child can use it, and the
        # program can no longer choose its GPUs.
        self.accelerate()
        if version < (2, 1):
            self.agent.blind("cpu", "PyTorch %s: tensors on the CPU are not recorded before 2.1, because recording breaks some operators there" % self.version)
        else:
            self.mode = mode_class(torch, self)()
            self.weak = torch.UntypedStorage
            self.modes, self.mode_at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
            included, excluded = torch._C._dispatch_tls_is_dispatch_key_included, torch._C._dispatch_tls_is_dispatch_key_excluded
            keys = torch._C.DispatchKey
            self.reached = lambda: included(keys.Python)
            # Within inference_mode, and within operators on tensors that need gradients.
            self.apart = lambda: excluded(keys.AutogradOther) or excluded(keys.ADInplaceOrView)
            self.graph_task = torch._C._current_graph_task_id
            self.watch_phases(torch)
            self.watch_profiler(torch)
            self.saved = self.saved_names(torch)
            if version >= _threads.FIXED:
                _threads.Threads(self).start()
            self.agent.switch = torch._C._dynamo.eval_frame.set_eval_frame
            _compiled.skip(torch, type(self.agent).guarded, type(self.agent.ticker).handle)
            _subclasses.watch(self, torch, version)
            if version < _compiled.FIXED:
                _compiled.Compiled(self).watch(torch)
            if self.agent.attached is None:  # when attached, the program may be within an operator; then the mode is on from the next step
                self.on(1)

    def accelerate(self):
        """Finds an accelerator that records its allocations. An extension may add it after PyTorch's import."""
        self.elsewhere.leave_out(self.module)
        if self.cuda is None and len(self.elsewhere.left_out) > 1:
            from . import _cuda

            self.cuda = _cuda.Cuda(self.agent, self.module)

    def saved_names(self, torch):
        """The prefix of the attributes of autograd's graph nodes that hold saved tensors and can be read without calling the program's
        unpack hooks: checkpoint's hook computes the forward pass again."""
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
            if self.thread is not None and len(args) == 1 and not kwargs:  # a closure allocates tensors
                agent.guarded("step", self.put_aside, optimizer)

        def after(optimizer, *_):
            if self.aside:
                self.take_back()
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
            agent.guarded("step", self.optimizer_stepped, optimizer)

        if version >= (2, 0):
            from torch.optim import optimizer

            agent.undo.append(optimizer.register_optimizer_step_post_hook(_compiled.apart(agent, torch, after)).remove)
            self.step_hooks = getattr(optimizer, "_global_optimizer_pre_hooks", None)
            if self.step_hooks is not None:  # older versions do not show the program's hooks
                agent.undo.append(optimizer.register_optimizer_step_pre_hook(_compiled.apart(agent, torch, before)).remove)
        else:  # the empty method that 1.12 and 1.13 call after every step
            agent.replace(torch.optim.Optimizer, "_optimizer_step_code", after)

    def watch_phases(self, torch):
        agent, original, compiles = self.agent, torch.nn.Module.eval, _compiled.compiling(torch)

        def eval(self_):
            if not compiles():
                agent.guarded("eval", self.evaluates)
            return original(self_)

        agent.replace(torch.nn.Module, "eval", functools.update_wrapper(eval, original))  # pickle finds it by its name

    def watch_profiler(self, torch):
        """Leaves the mode before a profiler of PyTorch begins. It would count each operator twice."""
        profiler = sys.modules.get("torch.autograd.profiler")
        if profiler is None:
            return
        original, self.profiled = profiler._enable_profiler, torch._C._autograd._profiler_enabled

        def leave():
            self.leaves_out()
            self.off()

        def enable(*args, **kwargs):
            self.agent.guarded("profiler", leave)
            return original(*args, **kwargs)

        self.agent.replace(profiler, "_enable_profiler", functools.update_wrapper(enable, original))

    def backward(self):
        """The program called backward, two frames above."""
        if self.refused:
            self.agent.guarded("backward", self.enter_paused)
        if self.cuda is not None and self.cuda.recording:
            self.agent.guarded("backward", self.cuda.backward.called, sys._getframe(2))

    def optimizer_stepped(self, optimizer):
        """Counts the steps of one optimizer among several: the first, as long as it steps. An optimizer that has never stepped between two
        of its steps takes over when it steps twice without it: a new training has begun. One that has needs 16 such steps."""
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
        """Leaves the mode while the optimizer steps, since it runs most operators of a step. An optimizer of PyTorch that has a state for
        each parameter allocates no tensor that stays. Hooks of the program might, so there must be none."""
        if (type(optimizer).__module__.startswith("torch.optim.") and len(self.step_hooks) == 1
                and not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
                and len(optimizer.state) == sum(len(g["params"]) for g in optimizer.param_groups)
                and self.thread == _thread.get_ident() and self.modes() == 1 and self.mode_at(0) is self.mode):
            self.mode.__exit__()
            self.aside = True

    def take_back(self):
        self.aside = False
        if self.modes() == 0:
            self.mode.__enter__()

    def begin_anew(self):
        """Forgets what was spent before the first step."""
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
        """Begins to record a GPU that the program has begun to use. From then on the mode sees little."""
        if self.cuda is None:
            self.accelerate()
        elif self.cuda.boundary() and self.pace is None:
            self.pace = Pace()
            for sampler in self.train, self.evaluation, self.clock:
                sampler.spare()

    def seen(self):
        """Whether there is anything to record in a snapshot."""
        return bool(self.table) or self.cuda is not None and (self.cuda.recording or self.cuda.begins())

    def tick(self):
        """Without steps, units end by the clock. With steps, this turns the mode off in a step that would cost too much."""
        if self.agent.ticker.acts():
            return  # a mode belongs to one thread
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
        """Whether this thread is within an operator: PyTorch has put the mode aside until it ends."""
        return self.thread == _thread.get_ident() and self.modes() == 0

    def on(self, weight):
        self.mode.weight, self.mode.paused, self.mode.limit = weight, False, sys.maxsize
        if self.dispatches():
            return
        n = self.modes()
        backward = self.backward_runs()
        if n == 0 and backward:
            self.refused = weight
            return
        if n == 1 and self.ours(0) and self.mode_at(0) is not self.mode and not self.restores():
            self.exit(self.mode_at(0))  # the mode of a thread, which now trains
            n = 0
        # Not above a mode of the program: the program would leave ours when it means to leave its own.
        if n > 0 and self.mode_at(n - 1) is not self.mode:
            return
        if n > 0 and not backward and not self.reached():
            self.exit(self.mode)  # it was entered in inference_mode, whose end disabled it
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
        """Turns the mode off. It can only be left in its own thread: if steps come from another thread than the one that imported torch, it
        stays on there. It is paused, and left later, where it must not be left, if PyTorch has put it aside, or if we have interrupted the
        program: an operator may have seen the mode, and be about to look for it."""
        if self.mode is None:
            return
        if self.thread == _thread.get_ident() and (self.agent.interrupting or self.dispatches() or self.restores()):
            self.mode.paused, self.mode.limit, self.mode.watcher = True, 0, self
            return
        mode = self.top()
        if mode is not None and self.restores():
            mode.paused = True
        elif mode is not None:
            self.exit(mode)

    def restores(self):
        """Whether the mode must not be left here. At their end, inference_mode, a function of torch.compile, one of torch.func and what an operator
        calls in Python make operators look for a mode again if they did at its begin, and each would fail without one. A backward pass
        restores the mode itself."""
        return self.apart() or self.within()

    def within(self):
        """Whether this thread is within a backward pass, a function of torch.func or one of torch.compile."""
        return self.backward_runs() or self.layers() > 0 or _compiled.runs(sys._getframe())

    def top(self):
        """The mode of this thread, if it is ours and none of the program is above it."""
        n = self.modes()
        return self.mode_at(n - 1) if n > 0 and self.ours(n - 1) else None

    def backward_runs(self):
        """Whether this thread is within a backward pass. After each node, PyTorch restores the modes that the pass began with."""
        return self.graph_task() >= 0

    def enter_paused(self):
        """Enters the mode before a backward pass, for a program whose steps end within it: the next unit is watched."""
        if self.modes() == 0 and not self.backward_runs():
            self.mode.paused, self.mode.limit = True, sys.maxsize
            self.mode.__enter__()

    def exhausted(self, mode, frame):
        if not mode.paused:
            mode.paused = self.works = True
            self.leaves_out()
            if self.agent.stepping:
                self.charge(self.costs(self.price.of(mode.ops, self.agent.elapsed() - self.begun)))
                mode.ops = 0
        leave(self, mode, frame)

    def exit(self, mode):
        mode.__exit__()
        if self.thread == _thread.get_ident():
            self.thread = None

    def ours(self, place):
        return type(self.mode_at(place)) is type(self.mode)

    def recalibrate(self):
        """From now on everything costs more."""
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
    """Calls us when torch has been imported. Changes no other import."""

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
                source.agent.sleep()  # until it trains or grows

        # Python leaves the frames of its own importing out of tracebacks. Under this name, it leaves this frame out, too.
        exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORTLIB[0], co_name=IMPORTLIB[1])
        loader.exec_module = exec_module
        return spec
