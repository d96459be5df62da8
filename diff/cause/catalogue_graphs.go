package cause

import "github.com/memdiag/memdiag/snapshot"

// Words that several causes look for.
var (
	forwardWords = []string{"forward", "loss", "predict", "logit", "encode", "feature"}
	copyWords    = []string{"clone", "copy", "deepcopy", "deep copy", "state dict", "dup", "duplicate"}
)

// nodeRecord is the largest size of a framework's record of a node; results are usually larger.
const nodeRecord = 128

// graphs are causes in which what an autograd graph has saved outlives its step.
var graphs = []Cause{
	{
		ID: "graph-retained", Name: "autograd graph retained after the step",
		What:      "The program retains a tensor of every step. Its graph holds everything that backward needs. Examples: a sum of losses, a hidden state passed to the next step, a running mean of tensors with a graph.",
		Sign:      "All stacks of the forward pass that save tensors for backward grow at the same rate. If the program sums losses after backward, only host memory grows.",
		Fix:       "store a number, not the tensor: call loss.item(), or detach the tensors that you store",
		Before:    "total_loss += loss\nhidden = rnn(window, hidden)",
		After:     "total_loss += loss.item()\nhidden = rnn(window, hidden.detach())",
		Workloads: []string{"L01", "L02", "L14"},
		References: []string{
			"horovod#641", "pytorch#2198", "pytorch#20275", "pytorch#1840", "transformers#6939",
		},
		clues: []clue{
			onTape(),
			owned(5, snapshot.OwnedByTape, "only the autograd graph holds them"),
			partly(3, snapshot.OwnedByTape, "the autograd graph holds them"),
			inGraph(4),
			withNodes(2 * Sure), // whatever else is retained, the graph is most of it
			held(3, "graph"),
			nameless(-6),
			named(2, "loss", "total", "running", "hidden", "state", "memory", "mean", "average", "statistic", "stat", "penalty", "probe", "history"),
			together(2, 3),
			upTo(-4, nodeRecord, "each is a record of %s, not a result"),
			backward(-7, No, "no backward pass runs"),
			heads(3, Yes, "the same function makes a value that the program passes from step to step"),
			heads(-3, No, "no variable of the program leads to them"),
			held(-2, "list", "map"),
			unlessKept(ofBackward(-5)),
			byOptimizer(-5),
		},
	},
	{
		ID: "pending-graph", Name: "forward passes without a backward pass",
		What: "Each forward pass with gradients enabled adds to the graph, and no backward pass frees it. " +
			"Examples: inference with gradients enabled, a rollout that feeds its output back in.",
		Sign:       "The stacks of the forward pass grow at the same rate. No backward pass and no optimizer allocates anything in the run.",
		Fix:        "call backward, or build no graph where gradients are not needed: torch.no_grad(), model.valid() in Burn, Ops.Valid() in memdiag's engine",
		Before:     "for _ in range(steps):\n    state = model(state)",
		After:      "with torch.no_grad():\n    for _ in range(steps):\n        state = model(state)",
		Workloads:  []string{"L03"},
		References: []string{"burn#2743", "burn#4339", "burn#4970"},
		clues: []clue{
			need(backward(6, No, "no backward pass and no optimizer allocates anything in the run's steps: backward is not called")),
			need(partly(4, snapshot.OwnedByTape, "the autograd graph holds them")),
			upTo(-4, nodeRecord, "each is a record of %s, not a result"),
			function(1, "forward", "infer", "inference", "generate", "rollout", "predict", "evaluate", "chain"),
		},
	},
	{
		ID: "forward-only-graph", Name: "a forward-only graph that nothing refers to",
		What:       "The program computes a statistic, such as a norm, on tensors with a graph, calls no backward, and drops the result. The framework's node registry still holds the graph: only a backward pass frees it.",
		Sign:       "The stacks of the statistic grow at the same rate, by a few small blocks each time. Only the graph holds them.",
		Fix:        "compute statistics without a graph: on detached tensors, in torch.no_grad(), on the inner backend (Burn), with Ops.Valid() (memdiag's engine)",
		Before:     "norm = sum(p.pow(2).sum() for p in model.parameters())\nlog(float(norm))",
		After:      "with torch.no_grad():\n    norm = sum(p.pow(2).sum() for p in model.parameters())\nlog(float(norm))",
		Workloads:  []string{"L06"},
		References: []string{"burn#4970"},
		clues: []clue{
			need(owned(5, snapshot.OwnedByTape, "only the autograd graph holds them")),
			need(heads(2, No, "no variable of the program leads to them")),
			together(3, 3),
			upTo(-2, nodeRecord, "each is a record of %s, not a result"),
			function(2, "probe", "statistic", "norm", "inspect", "monitor", "summary", "largest", "histogram", "measure"),
			partly(-5, snapshot.OwnedByGrad, "some of them are gradients"),
			ofBackward(-5),
			onHost(-6),
		},
	},
	{
		ID: "tape-nodes-orphaned", Name: "graph nodes that nothing can reach any more",
		What: "The framework has a record for each graph node, and its clean-up misses some: leaves that an optimizer replaced, " +
			"nodes whose output was held during backward, entries of a second index.",
		Sign:       "One or two small blocks of constant size per step, held only by the graph. Device memory grows slightly; host memory grows too.",
		Fix:        "update parameters in place instead of replacing them, release outputs before backward, or use a version of the framework that frees roots without children",
		Before:     "weight = (weight - rate * weight.grad).detach().requires_grad_()",
		After:      "with torch.no_grad():\n    weight -= rate * weight.grad",
		Workloads:  []string{"L04", "L05"},
		References: []string{"burn#2333", "burn#2347", "burn#2487", "burn#2488"},
		clues: []clue{
			need(owned(5, snapshot.OwnedByTape, "only the autograd graph holds them")),
			upTo(2, nodeRecord, "they have the size of a node's record (%s), not of a result"),
			gathered(-6), // something reaches them
			together(-3, 3),
			onHost(-6),
			operation(2, "they are allocated by code that makes a leaf require a gradient", "track", "require grad", "requires grad"),
			function(2, "registry", "node", "tape", "orphan", "arena", "leaf", "leave", "root", "sweep", "replace", "index"),
			named(-2, "mean", "average", "statistic", "stat", "running"),
		},
	},
	{
		ID: "gradient-never-used", Name: "a tensor requires a gradient that no backward computes",
		What:       "Each step makes a tensor require a gradient, but the loss does not depend on it. No backward pass frees its node.",
		Sign:       "One or two nodes or tensors per step, allocated where the forward pass makes a tensor require a gradient.",
		Fix:        "do not require gradients for tensors that the loss does not depend on: detach them, or create them without a gradient",
		Before:     "mask = torch.ones(n, requires_grad=True)   # not used in the loss",
		After:      "mask = torch.ones(n)",
		Workloads:  []string{"L07"},
		References: []string{"burn#3976"},
		clues: []clue{
			need(partly(5, snapshot.OwnedByTape, "the autograd graph holds them")),
			need(operation(2, "they are allocated by code that makes a tensor require a gradient", "track", "require grad", "requires grad")),
			upTo(2, nodeRecord, "they have the size of a node's record (%s), not of a result"),
			function(4, forwardWords...),
			onHost(-6),
			function(2, "mask", "unused", "aux", "auxiliary", "noise"),
		},
	},
	{
		ID: "gradient-graph-cycle", Name: "parameters and their gradients' graph hold each other",
		What:       "backward(create_graph=True) gives the gradients a graph. The graph refers to the parameters, and the parameters hold the gradients: a reference cycle.",
		Sign:       "Blocks of the parameters' sizes, allocated by the autograd engine (no Python line), and tensors saved by the second backward. gc.collect() does not free them.",
		Fix:        "use torch.autograd.grad for gradients of gradients, or set p.grad = None after use",
		Before:     "loss.backward(create_graph=True)\npenalty(model).backward()",
		After:      "grads = torch.autograd.grad(loss, params, create_graph=True)\npenalty(grads).backward()",
		References: []string{"pytorch#4661", "pytorch#7343", "pytorch#71068"},
		Workloads:  []string{"L15"},
		clues: []clue{
			owned(4, snapshot.OwnedByGrad, "gradients of earlier steps are still alive"),
			ofBackward(4),
			nameless(5),
			keepsAll(-6), // a list retains the graph, and no cycle
			named(4, "create graph", "double backward", "second order", "gradient penalty", "hessian", "hvp", "jacobian"),
			function(2, "backward", "autograd", "grad"),
			partly(1, snapshot.OwnedByTape, "the autograd graph holds them"),
		},
	},
	{
		ID: "checkpoint-storage", Name: "recomputed activations of a checkpoint are not cleared",
		What:       "A checkpointed region recomputes its activations in backward and stores them for the graph. If the recomputation stops early, or the region ends with a custom function, they stay.",
		Sign:       "Saved outputs of one region, allocated in the recomputation. Each step adds one set.",
		Fix:        "update the framework, or turn early stopping off (torch.utils.checkpoint.set_checkpoint_early_stop(False)); clear the tensors that your own hooks unpack",
		Before:     "def unpack(key):\n    return storage[key]",
		After:      "def unpack(key):\n    return storage.pop(key)",
		Workloads:  []string{"L17"},
		References: []string{"pytorch#77284", "pytorch#80151", "pytorch#161186", "pytorch#139214"},
		clues: []clue{
			inBackward(3),
			function(5, "recompute", "rematerialize", "remat", "unpack", "saved tensor hook", "early stop"),
			inFile(5, "torch/utils/checkpoint.py", "/checkpoint_activations.py", "/checkpoint_wrapper.py", "/activation_checkpointing/checkpointing.py"), // other files with this name save the model
			partly(1, snapshot.OwnedByTape, "the autograd graph holds them"),
			function(2, "recompute", "unpack", "early stop", "remat"),
			follows(-6, "it grows when a checkpoint is saved", Checkpoints),
			operation(-3, "they are copies", copyWords...),
		},
	},
	{
		ID: "saved-on-the-op", Name: "a custom operation stores its result on itself",
		What:       "A custom operation stores its result in its own field, not through the framework's way to save tensors. The operation and its graph node hold each other, or a list holds all operations.",
		Sign:       "One block per call, allocated in the operation's forward. Each has its own object as holder.",
		Fix:        "save tensors with ctx.save_for_backward, and never store the output on the operation",
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
