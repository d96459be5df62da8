package cause

import "github.com/memdiag/memdiag/snapshot"

// copies are causes in which whole models or their states stay live.
var copies = []Cause{
	{
		ID: "model-copies-kept", Name: "copies of the model are retained",
		What:       "The program copies the parameters at intervals: for the best model so far, for an average or for a comparison. It does not drop older copies.",
		Sign:       "Each copy adds the parameters' total size at once, in blocks of the parameters' sizes. A fixed number of copies is no leak.",
		Fix:        "keep one copy and overwrite it, or keep copies on the host or on disk",
		Before:     "best.append(copy.deepcopy(model.state_dict()))",
		After:      "best = {k: v.cpu() for k, v in model.state_dict().items()}",
		Workloads:  []string{"L24"},
		References: []string{"ema-pytorch#35", "pytorch#85410"},
		clues: []clue{
			named(3, "best", "ema", "moving average", "swa", "checkpoint", "state dict", "teacher", "target network", "model copy", "weight copy"),
			operation(1, "they are copies", copyWords...),
			within(1, "they are copies", copyWords...),
			follows(2, "each epoch adds one set", Epochs),
			held(1, "list", "map"),
			named(-5, metricWords...),
			named(-5, castWords...),
			partly(-5, snapshot.OwnedByGrad, "they are gradients"),
			within(-4, "they are newly created, not copied", moduleWords...),
			upTo(-4, 8, "each is a single number of %s"),
			named(-4, "stage", "staged", "staging", "writer", "async save", "pending write"),
		},
	},
	{
		ID: "staging-kept", Name: "copies staged for a writer are retained",
		What:       "An asynchronous checkpoint copies the state, and a writer saves the copy during training. If the copy is not released then, each save leaves one.",
		Sign:       "Each save adds a set of blocks of the parameters' sizes, allocated by the checkpoint code.",
		Fix:        "release the copy when the write completes, or reuse one staging buffer",
		Before:     "staged.append(copy_of(state))\nwriter.submit(staged[-1])",
		After:      "future = writer.submit(copy_of(state))\nfuture.add_done_callback(release)",
		Workloads:  []string{"L23"},
		References: []string{"pytorch#170163"},
		clues: []clue{
			named(4, "stage", "staged", "staging", "writer", "async save", "async checkpoint", "pending write", "flush", "persist", "upload"),
			follows(3, "they are allocated when a checkpoint is saved", Checkpoints),
			owned(1, snapshot.OwnedByCache, "a cache of the framework holds them"),
			operation(1, "they are copies", copyWords...),
			follows(-2, "it grows when the model is evaluated", Evaluations),
		},
	},
	{
		ID: "optimizer-state-stale", Name: "the optimizer retains the state of old parameters",
		What:       "The optimizer stores state under each parameter. When an adapter or a new head replaces parameters, the state of the old ones stays.",
		Sign:       "Each replacement adds state, allocated in the optimizer's step. Only the optimizer holds it.",
		Fix:        "delete the old parameters from the optimizer's state and groups, and from the model; or replace the optimizer by a new one",
		Before:     "model.head = new_head()\noptimizer.add_param_group({'params': model.head.parameters()})",
		After:      "for p in model.head.parameters():\n    optimizer.state.pop(p, None)\nmodel.head = new_head()",
		Workloads:  []string{"L27"},
		References: []string{"pytorch#85410", "accelerate#739"},
		clues: []clue{
			owned(7, snapshot.OwnedByOptim, "only the optimizer holds them, and they keep growing"),
			byOptimizer(6),
			heldBeside(-6, "state", "param groups"), // a list of optimizers belongs to the program
			named(3, "optimizer state", "optim state", "opt state"),
			usersFunction(4, "optim", "optimizer", "adam", "adamw", "init group", "momentum", "sgd"),
			follows(-1, "it grows at each step", Steps),
			shaped(-2, "each step adds more than the one before", Quadratic),
		},
	},
	{
		ID: "optimizer-state", Name: "optimizer state, allocated at its first step",
		What:       "The optimizer allocates its state at its first step and holds it for the whole run, as intended.",
		Sign:       "One rise by one or two times the parameters' size, or a few if layers are unfrozen later. Then memory is flat.",
		Fix:        "none needed; take the base snapshot after the first step, and this finding disappears",
		Before:     "# base snapshot, then the first optimizer.step()",
		After:      "# the first optimizer.step(), then the base snapshot",
		Workloads:  []string{"D01", "D02", "D13", "D14"},
		References: []string{"pytorch#25605"},
		when:       settled,
		clues: []clue{
			owned(5, snapshot.OwnedByOptim, "only the optimizer holds it, and it stopped growing"),
			outsideClosures(function(3, "optim", "optimizer", "init group", "adam", "adamw")),
		},
	},
}
