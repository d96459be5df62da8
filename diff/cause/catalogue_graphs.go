package cause

import "github.com/memdiag/memdiag/snapshot"

// Words that several causes look for.
var (
	forwardWords = []string{"forward", "loss", "predict", "logit", "encode", "feature"}
	copyWords    = []string{"clone", "copy", "deepcopy", "deep copy", "state dict", "dup", "duplicate"}
)

// nodeRecord is the most that a framework's record of a node takes; results are
// larger as a rule.
const nodeRecord = 128

// graphs are causes by which what an autodiff graph has saved outlives its step.
var graphs = []Cause{
	{
		ID: "graph-retained", Name: "autodiff graph kept beyond the step",
		What: "A loss, an output or a state of every step is kept with its graph, and with the graph all that its backward would need: " +
			"a sum of losses, a hidden state that is carried on, a running mean of tracked numbers.",
		Sign:      "Every stack of the forward pass that saves something for backward grows, all in step. On a GPU the sum of losses after backward shows nothing there: only the host grows.",
		Fix:       "keep a number, not the tensor: read the scalar out (loss.item()), or detach what you keep",
		Before:    "total_loss += loss\nhidden = rnn(window, hidden)",
		After:     "total_loss += loss.item()\nhidden = rnn(window, hidden.detach())",
		Workloads: []string{"L01", "L02", "L14"},
		References: []string{
			"horovod#641", "pytorch#2198", "pytorch#20275", "pytorch#1840", "transformers#6939",
		},
		clues: []clue{
			onTape(),
			owned(5, snapshot.OwnedByTape, "only the autodiff graph holds them"),
			partly(3, snapshot.OwnedByTape, "the autodiff graph holds them"),
			inGraph(4),
			held(3, "graph"),
			nameless(-6),
			named(2, "loss", "total", "running", "hidden", "state", "memory", "mean", "average", "statistic", "stat", "penalty", "probe", "history"),
			together(2, 3),
			upTo(-4, nodeRecord, "each is a record of %s, not a result"),
			backward(-7, No, "nobody calls backward"),
			heads(3, Yes, "a value that the program carries from event to event is made in the same function"),
			heads(-3, No, "nothing that the program holds leads to them"),
			held(-2, "list", "map"),
			unlessKept(ofBackward(-5)),
			byOptimizer(-5),
		},
	},
	{
		ID: "pending-graph", Name: "forward passes that no backward follows",
		What: "Each forward pass on tracked parameters adds to a graph that backward could still walk, and nobody calls it. " +
			"It is growth that the program asked for, or forgot: inference with gradients on, a rollout that feeds an output back in.",
		Sign:       "The stacks of the forward pass grow in step, and nothing in the run, also within its steps, is allocated in a backward pass or by an optimizer.",
		Fix:        "call backward, or run what needs none without a graph: torch.no_grad(), model.valid() of Burn, Ops.Valid() of memdiag's engine",
		Before:     "for _ in range(steps):\n    state = model(state)",
		After:      "with torch.no_grad():\n    for _ in range(steps):\n        state = model(state)",
		Workloads:  []string{"L03"},
		References: []string{"burn#2743", "burn#4339", "burn#4970"},
		clues: []clue{
			need(backward(6, No, "the run allocates within its steps, but nothing in a backward pass or in an optimizer: nobody calls backward")),
			need(partly(4, snapshot.OwnedByTape, "the autodiff graph holds them")),
			upTo(-4, nodeRecord, "each is a record of %s, not a result"),
			function(1, "forward", "infer", "inference", "generate", "rollout", "predict", "evaluate", "chain"),
		},
	},
	{
		ID: "forward-only-graph", Name: "a graph of forward passes that nothing refers to",
		What: "Tracked tensors are only looked at: a probe, a norm, a statistic of parameters. No backward comes by, and nobody holds the result, " +
			"but the framework's registry of nodes keeps what was computed, since only a backward would sweep it.",
		Sign:       "The stacks of the probe grow in step, a few small blocks each time, held by the graph alone; the program holds nothing that leads to them.",
		Fix:        "compute statistics without a graph: on detached tensors, under torch.no_grad(), on the inner backend (Burn), with Ops.Valid() (memdiag's engine)",
		Before:     "norm = sum(p.pow(2).sum() for p in model.parameters())\nlog(float(norm))",
		After:      "with torch.no_grad():\n    norm = sum(p.pow(2).sum() for p in model.parameters())\nlog(float(norm))",
		Workloads:  []string{"L06"},
		References: []string{"burn#4970"},
		clues: []clue{
			need(owned(5, snapshot.OwnedByTape, "only the autodiff graph holds them")),
			need(heads(2, No, "nothing that the program holds leads to them")),
			together(3, 3),
			upTo(-2, nodeRecord, "each is a record of %s, not a result"),
			function(2, "probe", "statistic", "norm", "inspect", "monitor", "summary", "largest", "histogram", "measure"),
			partly(-5, snapshot.OwnedByGrad, "gradients are among them"),
			ofBackward(-5),
			onHost(-6),
		},
	},
	{
		ID: "tape-nodes-orphaned", Name: "records of the graph that nothing can reach any more",
		What: "The framework keeps a record for each node of the graph, and its clean-up misses some: leaves that an optimizer replaced, " +
			"nodes whose output was held over backward, entries of a second index.",
		Sign:       "A small block or two of constant size each step, held by the graph alone; device memory hardly moves, the host's grows too.",
		Fix:        "write to parameters in place rather than replace them, release outputs before backward, or use a version of the framework that sweeps roots without children",
		Before:     "weight = (weight - rate * weight.grad).detach().requires_grad_()",
		After:      "with torch.no_grad():\n    weight -= rate * weight.grad",
		Workloads:  []string{"L04", "L05"},
		References: []string{"burn#2333", "burn#2347", "burn#2487", "burn#2488"},
		clues: []clue{
			need(owned(5, snapshot.OwnedByTape, "only the autodiff graph holds them")),
			upTo(2, nodeRecord, "they have the size of a node's record (%s), not of a result"),
			gathered(-6), // something reaches them
			together(-3, 3),
			onHost(-6),
			operation(2, "they are made where a leaf is tracked", "track", "require grad", "requires grad"),
			function(2, "registry", "node", "tape", "orphan", "arena", "leaf", "leave", "root", "sweep", "replace", "index"),
			named(-2, "mean", "average", "statistic", "stat", "running"),
		},
	},
	{
		ID: "gradient-never-used", Name: "a gradient is asked for that no backward computes",
		What:       "Each step tracks a tensor that the loss does not depend on. Its node waits for a backward that never comes by.",
		Sign:       "Node records, or the tensors themselves, one or two a step, born inside the forward pass where something is tracked.",
		Fix:        "do not track what the loss does not depend on; detach it, or make it without a gradient",
		Before:     "mask = torch.ones(n, requires_grad=True)   # not used in the loss",
		After:      "mask = torch.ones(n)",
		Workloads:  []string{"L07"},
		References: []string{"burn#3976"},
		clues: []clue{
			need(partly(5, snapshot.OwnedByTape, "the autodiff graph holds them")),
			need(operation(2, "they are made where a tensor is tracked", "track", "require grad", "requires grad")),
			upTo(2, nodeRecord, "they have the size of a node's record (%s), not of a result"),
			function(4, forwardWords...),
			onHost(-6),
			function(2, "mask", "unused", "aux", "auxiliary", "noise"),
		},
	},
	{
		ID: "gradient-graph-cycle", Name: "parameters and their gradients' graph hold each other",
		What: "backward(create_graph=True) makes gradients that have a graph, which reaches the parameters, which hold the gradients. " +
			"No reference count of that ring ever falls to zero.",
		Sign:       "Blocks of the parameters' sizes, allocated by the autograd engine (no line of Python), and what the second backward saved; a collection of garbage does not help.",
		Fix:        "use torch.autograd.grad for gradients of gradients, or set p.grad = None after use",
		Before:     "loss.backward(create_graph=True)\npenalty(model).backward()",
		After:      "grads = torch.autograd.grad(loss, params, create_graph=True)\npenalty(grads).backward()",
		References: []string{"pytorch#4661", "pytorch#7343", "pytorch#71068"},
		Workloads:  []string{"L15"},
		clues: []clue{
			owned(4, snapshot.OwnedByGrad, "gradients of earlier steps are still alive"),
			ofBackward(4),
			nameless(5),
			keepsAll(-6), // a list keeps the graph, and no ring
			named(4, "create graph", "double backward", "second order", "gradient penalty", "hessian", "hvp", "jacobian"),
			function(2, "backward", "autograd", "grad"),
			partly(1, snapshot.OwnedByTape, "the autodiff graph holds them"),
		},
	},
	{
		ID: "checkpoint-storage", Name: "what activation checkpointing recomputed is not cleared",
		What:       "A checkpointed region computes its activations once more in backward and stores them for the graph. Where the recomputation stops early, or a custom function comes last in the region, nobody clears that storage.",
		Sign:       "Saved outputs of one region, one set a step, born in the recomputation.",
		Fix:        "update the framework, or turn early stopping off (torch.utils.checkpoint.set_checkpoint_early_stop(False)); clear what you unpack in hooks of your own",
		Before:     "def unpack(key):\n    return storage[key]",
		After:      "def unpack(key):\n    return storage.pop(key)",
		Workloads:  []string{"L17"},
		References: []string{"pytorch#77284", "pytorch#80151", "pytorch#161186", "pytorch#139214"},
		clues: []clue{
			inBackward(3),
			function(5, "recompute", "rematerialize", "remat", "unpack", "saved tensor hook", "early stop"),
			ofLibrary(5, "checkpoint"), // a program's own function of this name saves the model
			partly(1, snapshot.OwnedByTape, "the autodiff graph holds them"),
			function(2, "recompute", "unpack", "early stop", "remat"),
			follows(-6, "it grows where a checkpoint is saved", Checkpoints),
			operation(-3, "they are copies", copyWords...),
		},
	},
	{
		ID: "saved-on-the-op", Name: "a custom operation keeps its result on itself",
		What: "An operation of the program's own stores what it computed in a field of its own, not by the framework's way to save tensors. " +
			"The operation and its node hold each other, or a list of operations holds all.",
		Sign:       "One block a call, born inside the operation's forward, each on an object of its own.",
		Fix:        "save tensors by the framework's own means (ctx.save_for_backward), and never the output on the operation",
		Before:     "def forward(ctx, x):\n    ctx.out = x * x\n    return ctx.out",
		After:      "def forward(ctx, x):\n    ctx.save_for_backward(x)\n    return x * x",
		Workloads:  []string{"L16"},
		References: []string{"pytorch#25340"},
		clues: []clue{
			need(inForward(2)),
			perObject(6),
			unheld(4),
			named(3, "ctx", "op", "operation", "autograd function", "custom function", "apply", "setup context"),
			held(-2, "attribute"),
		},
	},
}
