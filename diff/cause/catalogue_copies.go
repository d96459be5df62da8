package cause

import "github.com/memdiag/memdiag/snapshot"

// copies are causes by which whole models or their states stay.
var copies = []Cause{
	{
		ID: "model-copies-kept", Name: "copies of the model are kept",
		What:       "A copy of the parameters is made at an interval, for the best model so far, for an average or for a comparison, and older ones are not dropped.",
		Sign:       "A stair of the parameters' total size for each copy, in blocks of the parameters' sizes. A few that are kept on purpose level off.",
		Fix:        "keep one copy and write over it, or keep copies on the host or on disk",
		Before:     "best.append(copy.deepcopy(model.state_dict()))",
		After:      "best = {k: v.cpu() for k, v in model.state_dict().items()}",
		Workloads:  []string{"L24"},
		References: []string{"ema-pytorch#35", "pytorch#85410"},
		clues: []clue{
			named(3, "best", "ema", "moving average", "swa", "checkpoint", "state dict", "teacher", "target network", "model copy", "weight copy"),
			operation(1, "they are copies", copyWords...),
			within(1, "they are copies", copyWords...),
			follows(2, "one set comes with each epoch", Epochs),
			held(1, "list", "map"),
			named(-5, metricWords...),
			named(-5, castWords...),
			partly(-5, snapshot.OwnedByGrad, "they are gradients"),
			within(-4, "they are made anew, not copied", moduleWords...),
			named(-4, "stage", "staged", "staging", "writer", "async save", "pending write"),
		},
	},
	{
		ID: "staging-kept", Name: "copies staged for a writer are kept",
		What:       "An asynchronous checkpoint copies the state, and a writer saves it while the training goes on. If the copy is not let go of when the write is done, each save leaves one.",
		Sign:       "A stair for each save, in blocks of the parameters' sizes, born where a checkpoint is made.",
		Fix:        "release the copy in the completion of the write, or stage into one buffer that is used again",
		Before:     "staged.append(copy_of(state))\nwriter.submit(staged[-1])",
		After:      "future = writer.submit(copy_of(state))\nfuture.add_done_callback(release)",
		Workloads:  []string{"L23"},
		References: []string{"pytorch#170163"},
		clues: []clue{
			named(4, "stage", "staged", "staging", "writer", "async save", "async checkpoint", "pending write", "flush", "persist", "upload"),
			follows(3, "they are born where a checkpoint is saved", Checkpoints),
			owned(1, snapshot.OwnedByCache, "a cache of the framework holds them"),
			operation(1, "they are copies", copyWords...),
			follows(-2, "it grows where the model is evaluated", Evaluations),
		},
	},
	{
		ID: "optimizer-state-stale", Name: "the optimizer keeps the state of ever more parameters",
		What:       "The optimizer's map of states is keyed by the parameter. Where parameters are replaced or added, by an adapter or a new head, the old ones' moments stay, whether the model has them still or not.",
		Sign:       "A stair at each replacement, allocated in the optimizer's step, that nothing else than the optimizer holds.",
		Fix:        "retire old parameters from the model, and drop their keys from the optimizer's state and their groups; or make a new optimizer with the new parameters and let go of the old one",
		Before:     "model.head = new_head()\noptimizer.add_param_group({'params': model.head.parameters()})",
		After:      "for p in model.head.parameters():\n    optimizer.state.pop(p, None)\nmodel.head = new_head()",
		Workloads:  []string{"L27"},
		References: []string{"pytorch#85410", "accelerate#739"},
		clues: []clue{
			owned(7, snapshot.OwnedByOptim, "only the optimizer holds them, and they go on growing"),
			byOptimizer(6),
			heldBeside(-6, "state", "param groups"), // a list of optimizers is of the program
			named(3, "optimizer state", "optim state", "opt state"),
			usersFunction(4, "optim", "optimizer", "adam", "adamw", "init group", "momentum", "sgd"),
			follows(-1, "it comes with each step", Steps),
			shaped(-2, "it grows by itself", Quadratic),
		},
	},
	{
		ID: "optimizer-state", Name: "optimizer state, made at its first step",
		What:       "The optimizer allocates its moments at its first step and keeps them for the whole run. That is wanted.",
		Sign:       "One stair of once or twice the parameters' size, or a few where layers are unfrozen, and then a flat line.",
		Fix:        "none needed; take the base snapshot after the first step and it is gone from the list",
		Before:     "# base snapshot, then the first optimizer.step()",
		After:      "# the first optimizer.step(), then the base snapshot",
		Workloads:  []string{"D01", "D02", "D13", "D14"},
		References: []string{"pytorch#25605"},
		when:       settled,
		clues: []clue{
			owned(5, snapshot.OwnedByOptim, "only the optimizer holds it, and it does not go on growing"),
			function(3, "optim", "optimizer", "init group", "adam", "adamw"),
		},
	},
}
