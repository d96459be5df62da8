"""PyTorch: steps from its optimizers, and on the CPU the stacks that allocate tensor storages.

A dispatch mode sees every operator, and keeps a weak pointer to each new storage. It is on for some steps
only: for all while its budget lasts, then for one in so many. What the others made is counted by a census,
or, where no tensor of the program's has it, stood for by what is born in a recorded step.
"""

import _thread
import collections
import functools
import itertools
import math
import sys
import time

from . import _categories, _census, _threads
from ._autograd import quiet
from ._clock import work
from ._elsewhere import Elsewhere
from ._handlers import raised
from ._leave import leave
from ._mode import DEPTH, mode_class
from ._price import Pace, Price
from ._sampler import Sampler, Stretches

# What the mode may cost: so many seconds, then this share of the time.
ALLOWANCE, SHARE = 0.06, 0.015
# What it may cost before the first step, or look by the clock: a model takes some thousands of operators to make, and a program
# without steps has as many in each second.
BEFORE = 0.15
# Evaluations are rarer than steps: a budget of their own.
EVAL_ALLOWANCE, EVAL_SHARE = 0.06, 0.025
# Where so many storages more have no stack, so many times the steps that one of them came in are watched in a row, which
# may cost so much together: chance may miss for long what is made once in a while, as each epoch, several at once.
UNKNOWN, PURSUED, PURSUIT_ALLOWANCE, PURSUIT_SHARE = 8, 8, 0.1, 0.01
# A unit is watched up to so many times the operators of the shortest one, or longer while its budget lasts: a
# reinforcement learner makes hundreds of rounds alike before it takes a step, and many steps then.
LONG = 16
# The file and the function of Python's own whose frames are left out of the tracebacks of imports.
IMPORTLIB = "<frozen importlib._bootstrap>", "_call_with_frames_removed"


class Torch:
    def __init__(self, agent):
        self.agent = agent
        self.module = None
        self.stacks = {}  # key of a stack: its number
        self.keys = []  # by number
        self.known = {}  # frames by code object and place
        self.codes = {}  # id of a code object: the object, which keeps the id its own
        self.stood = {}  # by size, the stack whose storages stood for most of those that nobody watched
        self.largest = {}  # by number of a stack: the bytes of the largest storage that it made
        self.anew, self.grown = set(), set()  # stacks that made larger ones, but never of the one before; and those that did
        self.mode = None
        self.price = None  # of operators under the mode
        self.cuda = None
        self.elsewhere = Elsewhere()
        self.since_import = math.inf  # the time at which PyTorch had been imported
        self.saved = ""
        self.works = False  # it makes more operators before the first step than to make a model takes
        self.fresh()

    def fresh(self):
        """Nothing is known of this process yet."""
        # StorageImpl address: [stack, bytes, birth step, weight, turn]; each holds a weak reference.
        self.table = {}
        self.young, self.late = [], []  # those of this unit, and of the one before it
        self.lent = {}  # StorageImpl address: where its memory lies, which another library owns
        self.thread = None  # in which the mode is on, of those whose steps count the latest
        self.skip = 0  # steps at whose end nothing is to be done
        self.aside = False  # the mode, for as long as an optimizer steps
        self.train, self.evaluation = Sampler(ALLOWANCE, SHARE), Sampler(EVAL_ALLOWANCE, EVAL_SHARE)
        # Of a program without steps; what was spent on the next snapshot; and when the last stretch of time ended that was watched.
        self.clock, self.ahead, self.stretch = Stretches(ALLOWANCE, SHARE), 0.0, 0.0
        self.asked = False  # a snapshot has this unit be watched, and pays for it
        self.shortest = math.inf  # operators of a step that was watched
        self.unit, self.begun = self.train, 0.0  # of what the unit is that goes on, and since when
        # Of a program that uses a GPU; and the turn in which the unit began, when, and what the agent had taken then.
        self.pace, self.paced = None, (0, 0.0, 0.0)
        self.evaluated = False  # since the last step
        self.turn = 0  # counts the steps, or where there are none the looks by the clock
        # The turn of a census and how many had no stack; for how many steps more to watch for them, whether this one is, and the
        # seconds that took.
        self.unknown, self.pursued, self.pursues, self.pursuit = None, 0, False, 0.0
        self.whole = True  # the unit that has just ended was recorded
        self.since = None  # the turn from which on not all were, to spare time
        self.blind = False  # the last evaluation was not
        self.handles = _census.Handles()
        # Storages that had a handle at the last census, and those to which a walk has given one since.
        self.handled, self.given = None, set()
        self.older = set()  # of a child, those with a handle from before it was watched; None up to the first census
        self.counted = {}  # by address, how many a storage stood for at the last snapshot
        # Ids of optimizers: the one whose steps count, how often others stepped since it did, and those
        # that ever did so between two of its steps.
        self.primary, self.others, self.beside = None, {}, set()
        self.bytes, self.count = 0, 0  # of live storages, at the last snapshot
        self.pinned = set()  # storages that are left to the record of pinned memory
        self.categories = _categories.Categories(self.agent, self)
        self.told = _categories.Told()  # by the last census

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

    # Units: what lies between two steps. An evaluation, with all up to the next step, is another kind.

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

    def take_turn(self):
        self.whole = self.watches()
        self.turn += 1
        self.begin(self.train if self.agent.stepping else self.clock)

    def unwatched(self):
        """How many units from now on are not watched, as far as can be told."""
        return 0 if self.mode is None or self.watches() or self.late or self.pursued else self.train.ahead()

    def settled(self):
        """Whether all that the last step made was seen, and the last evaluation: what nobody has seen is older,
        and was not put in the place of what was."""
        return not self.counts() or self.whole and not self.blind

    def counts(self):
        """Whether a snapshot takes a census, which is the dearest part of it."""
        return self.mode is not None and self.since is not None

    def watch(self):
        """Records the unit that has begun, for a snapshot behind it."""
        if self.counts() and not self.watches() and not self.dispatches() and not self.agent.ticker.acts():
            self.on(1)
            self.asked = self.agent.stepping and self.watches()

    def watches(self):
        return self.thread is not None and not self.mode.paused

    def evaluates(self):
        """The program begins an evaluation; several models may be told one by one."""
        self.skip = 0
        if self.mode is not None and not self.evaluated:
            self.evaluated = self.agent.stepping
            self.begin(self.evaluation)
            if self.agent.waited:
                self.watch()
            self.blind = not self.watches()

    def begin(self, sampler):
        """Begins a unit: recorded or not, as its sampler says."""
        self.settle()
        self.unit = sampler
        weight = sampler.next(self.begun)
        self.pursues = not weight and sampler is self.train and self.pursued > 0 and self.pursuit <= PURSUIT_ALLOWANCE + PURSUIT_SHARE * self.begun
        if self.pursues:
            weight, self.pursued = 1, self.pursued - 1
        if weight:
            self.on(weight)
            return
        self.leaves_out()
        self.off()

    def leaves_out(self):
        """Not all is watched from now on."""
        if self.since is None:
            self.since, self.stretch = self.turn, self.agent.elapsed()

    def settle(self):
        """Ends a unit: what it cost, and which of its storages are gone already."""
        now = self.agent.elapsed()
        price = None
        if self.thread is not None:
            begun = work()
            self.sweep_young()
            if self.unit is self.train and self.agent.step > 1 and self.watches():
                self.shortest = min(self.shortest, max(1, self.mode.ops))
            price = self.price.of(self.mode.ops, now - self.begun) + (work() - begun)
            cost = self.costs(price)
            self.charge(cost)
            if self.unit is self.clock and self.counts():
                self.ahead += cost
                self.stand(now)
        elif self.late:
            self.sweep_young()
        turn, since, taken = self.paced
        if self.turn > turn:
            if self.pace is not None and self.unit is self.train:
                self.pace.took((now - since - (self.agent.took - taken)) / (self.turn - turn), price)
            self.paced = self.turn, now, self.agent.took
        self.begun, self.mode.ops = now, 0

    def costs(self, price):
        """Seconds that it costs to watch what has a price, which is that of a CPU's operators."""
        return price if self.pace is None else self.pace.cost(price)

    def charge(self, cost):
        if self.asked:
            self.ahead, self.asked = self.ahead + cost, False
        elif self.pursues:
            self.pursuit += cost
        else:
            self.unit.costs(cost)

    def stand(self, now):
        """Has what was made in a stretch of time stand for all since the one before that was watched."""
        weight = max(1, round((now - self.stretch) / max(1e-6, now - self.begun)))
        for address in self.late:
            if address in self.table:
                self.table[address][3] = weight
        self.stretch = now

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

    def release(self):
        free = getattr(getattr(self, "weak", None), "_free_weak_ref", None)
        if free is not None:
            for address in list(self.table):
                free(address)
        self.table, self.young, self.late, self.lent = {}, [], [], {}

    def finish(self):
        self.off()
        if self.cuda is not None:
            self.cuda.finish()

    def reach(self):
        """How many units a recorded one stood for at most."""
        return max(self.train.reach, self.evaluation.reach)

    def about(self):
        if self.module is None:
            return {}
        return {"torch": self.version, "sampled": self.reach()}

    # Storages.

    def sweep_young(self):
        """Lets go of what is gone of this unit and the one before. It has no memory, but what is left of it lies
        scattered between large blocks of malloc's, which would have to go elsewhere."""
        expired, free, table = self.weak._expired, self.weak._free_weak_ref, self.table
        for address in itertools.chain(self.young, self.late):
            if address in table and expired(address):
                free(address)
                del table[address]
        self.young, self.late = [], self.young

    def sweep(self):
        if self.mode is None:
            return
        expired, free, table = self.weak._expired, self.weak._free_weak_ref, self.table
        gone = [a for a in list(table) if expired(a)]
        for address in gone:
            free(address)
            del table[address]
        self.young, self.late = [], []

    def number(self, key, frame):
        """The number of a stack; key is the ids of its code objects and the places in them."""
        n = self.stacks.get(key)
        if n is None:
            n = self.stacks[key] = len(self.keys)
            self.keys.append(key)
            depth = DEPTH
            while frame is not None and depth:
                self.codes[id(frame.f_code)] = frame.f_code
                frame = frame.f_back
                depth -= 1
        return n

    def grows(self, stack, size, args):
        """A stack makes a storage that is larger than any before: of an older one, as a cache that is joined with what comes,
        or of what is as long as the input."""
        before, self.largest[stack] = self.largest.get(stack), size
        if before is None or stack in self.grown:
            return
        for t in itertools.chain(*(a if type(a) in (list, tuple) else (a,) for a in args)):
            if type(t) is self.module.Tensor and t.layout is self.module.strided:
                storage = t.untyped_storage()
                entry = self.table.get(storage._cdata)
                if (entry is None or entry[4] < self.turn) and before <= storage.nbytes() < size:
                    self.grown.add(stack)
                    self.anew.discard(stack)
                    return
        self.anew.add(stack)

    def frames(self, n):
        key, known, frames = self.keys[n], self.known, []
        for place in zip(key[::2], key[1::2]):
            f = known.get(place)
            if f is None:
                f = known[place] = frame_of(self.codes[place[0]], place[1])
            frames.append(f)
        return frames

    def threads(self):
        """Whether the program has threads that nobody watches."""
        return _thread._count() > self.agent.ticker.running

    def fill(self, snapshot):
        if self.module is None:
            return
        snapshot.producer = "PyTorch " + self.version
        if self.mode is None:
            if self.cuda is not None:
                snapshot.categories = self.purposes().gpu
            return
        total = 0
        device = self.elsewhere(snapshot, id(self.module))
        device(None)  # the CPU's comes first
        self.leave_pinned()
        places = self.places()
        again = self.lent.keys() - places.values()  # where an older one lies already there is no more memory for them
        counts, rest, gone = self.census(places, again)
        stood = collections.defaultdict(collections.Counter)
        self.counted, purposes = counts, self.purposes()
        snapshot.categories = purposes.gpu
        if self.agent.stepping and self.counts() and self.whole:
            self.pursue(sum(n for n, _ in rest.values()))
        for address, entry in list(self.table.items()):
            stack, size, birth, weight, turn = entry
            if address in again or address in self.pinned:
                continue
            if size == 0:
                size = entry[1] = self.bytes_now(address)
                if size == 0:
                    continue
            # What is alive of the step that has just ended is alive at every such moment, be it
            # recorded or not: only what outlives the next one as well stands for more.
            if turn >= self.turn - 1:
                weight = 1
            weight = counts.get(address, weight)
            if counts.get(address, 1) > 1:
                stood[size][stack] += weight
            n = snapshot.stacks.add(stack, lambda: self.frames(stack))
            snapshot.add(device(address), address, size * weight, n, birth, weight, purposes.of(address, size, weight))
            total += size * weight
        for size, (count, address) in rest.items():
            total += size * count
            for category, n in purposes.shares(size, count):
                snapshot.add(device(address), address, size * n, 0, -1, n, category)
        for size, (count, address) in gone.items():
            stack = self.stood[size]
            total += size * count
            snapshot.add(device(address), address, size * count, snapshot.stacks.add(stack, lambda: self.frames(stack)), -1, count)
        self.stood.update((size, stacks.most_common(1)[0][0]) for size, stacks in stood.items())
        snapshot.anew = [n for n in map(snapshot.stacks.known, self.anew) if n]
        snapshot.allocated()
        self.bytes = total
        self.count = sum(snapshot.blocks["count"])
        if self.reach() > 1:
            snapshot.notes.append(
                "tensors on the CPU are recorded at some steps only, to spare time (up to one in %d): tensors of the steps in between are assigned to stacks by size" % self.reach())

    def purposes(self):
        """What tensors are for, as far as that is known."""
        found = _categories.Found(self.module, self.cuda.blocks if self.cuda is not None and self.cuda.recording else None, self.told, self.elsewhere.of)
        try:
            with _census.unasked(self.module):
                self.categories.find(found, quiet(self.agent))
        except Exception as e:  # memory can be recorded without
            if raised(e):
                raise
            self.agent.note("the roles of tensors are unknown: %s: %s" % (type(e).__name__, str(e)[:200]))
        return found

    def leave_pinned(self):
        """Leaves storages in pinned memory to its own record."""
        blocks, self.pinned = self.in_pinned(), set()
        if blocks is None:
            return
        for address in list(self.table):
            storage = self.weak._new_with_weak_ptr(address)
            if storage is not None and blocks.start(storage.data_ptr()) is not None:
                self.pinned.add(address)

    def in_pinned(self):
        """The blocks of pinned memory, and of GPUs; None where pinned memory has no record."""
        blocks = self.cuda.blocks if self.cuda is not None else None
        return blocks if blocks is not None and blocks.host else None

    def places(self):
        """The oldest storage in each place of another library's memory, {place: address}."""
        self.lent = {a: place for a, place in list(self.lent.items()) if a in self.table}
        return {place: a for a, place in reversed(self.lent.items())}

    def census(self, places, again):
        """How many each storage stands for, as far as Python has handles of what nobody watched; what is left, of which no stack
        is known; and what is left of sizes for which storages of one stack stood before they went, as the first of a queue do."""
        if self.since is None and self.threads():
            self.since = self.turn
        self.told = _categories.Told()
        if self.since is None or not self.whole and self.older is not None:
            return {}, {}, {}
        with _census.unasked(self.module):
            storages, each = _census.handled(self.module, quiet(self.agent), places, self.handles, self.told.parameters, self.elsewhere, self.told.pointers, self.in_pinned())
        self.given &= storages.keys()
        for address in self.given:
            del storages[address]
        if not each:
            self.told.add(storages, self.table)
        self.handled = frozenset(storages)
        if self.older is None:
            self.older = storages.keys() - self.table.keys()
        self.older &= storages.keys()
        older = [(a, storages.pop(a)) for a in self.older]
        before, births = {}, collections.defaultdict(set)
        for address, entry in list(self.table.items()):
            if address in again:
                continue
            if entry[4] < self.turn - 1:
                before[address] = entry
                births[entry[0]].add(entry[4])
            else:
                storages.pop(address, None)
        sampled = {a for a, e in before.items() if e[4] >= self.since}
        growing = {stack for stack, b in births.items() if len(b) > 1}
        gone = self.of_stacks_gone(storages, each, before)
        counts, rest = _census.share_out(storages, each, before, sampled, growing)
        for address, like in older:
            entry = rest.setdefault(like[0], [0, address])
            entry[0] += each.get(like, 1)
        for entry in itertools.chain(rest.values(), gone.values()):
            entry[0] = round(entry[0])
        return counts, rest, gone

    def of_stacks_gone(self, storages, each, before):
        """Takes those out of storages for whose size a stack stood that has no watched storage left."""
        here = {(entry[0], entry[1]) for entry in before.values()}
        lost = {size for size, stack in self.stood.items() if (stack, size) not in here}
        gone = {}
        for address, like in list(storages.items()) if lost else ():
            if like[0] in lost and address not in before:
                entry = gone.setdefault(like[0], [0, address])
                entry[0] += each.get(like, 1)
                del storages[address]
        return gone

    def pursue(self, count):
        """Has the next steps be watched where many storages have come that have no stack."""
        turn, before = self.unknown or (self.turn, count)
        more = count - before
        if more >= UNKNOWN:
            self.pursued, turn, before = PURSUED * (self.turn - turn) // more, self.turn, count
        self.unknown = turn, min(before, count)

    def lines(self):
        """How many tensors live by the file and line that made them."""
        out = collections.Counter()
        for stack, _, _, weight, _ in list(self.table.values()):
            frames = self.frames(stack)
            if frames:
                out[frames[0][1:]] += weight
        return out

    def bytes_now(self, address):
        storage = self.weak._new_with_weak_ptr(address)
        return 0 if storage is None else storage.nbytes()


def frame_of(code, lasti):
    """A frame as a triple: function, file, line."""
    line = code.co_firstlineno
    for start, end, n in code.co_lines():
        if start <= lasti < end and n is not None:
            line = n
            break
    return getattr(code, "co_qualname", code.co_name), code.co_filename, line


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
