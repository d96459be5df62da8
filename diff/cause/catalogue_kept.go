package cause

import "github.com/memdiag/memdiag/snapshot"

// Words of metrics, and of what logs.
var (
	metricWords = []string{
		"metric", "torchmetrics", "accuracy", "auroc", "auc", "precision", "recall", "f1", "confusion matrix", "bleu", "rouge", "perplexity", "iou", "fid", "meter",
	}
	logWords = []string{"log", "logger", "logged", "logging", "history", "wandb", "tensorboard", "tracker", "report", "losses", "curve", "journal"}
)

// moduleWords are functions that make a module's parameters.
var moduleWords = []string{"new linear", "new conv", "new embedding", "new module", "new model", "init", "reset parameter", "kaiming", "xavier", "uniform", "normal", "build model"}

// fewNumbers is the most that what a log shows of a step takes: a row of numbers. A
// larger tensor is an output or an activation.
const fewNumbers = 1024

// kept are causes by which a program keeps results of each step.
var kept = []Cause{
	{
		ID: "activations-kept", Name: "activations kept beyond the step",
		What:       "The forward pass, or what stands around it, appends what it computed to something that outlives the step: a list on the module, a bank of features. The usual advice, torch.no_grad() around it, takes the gradients away as well.",
		Sign:       "One or a few stacks, a block or more a call, born in the forward pass; other stacks do not grow with them.",
		Fix:        "keep only what the head reads, in a local variable, or clear the list at the start of each forward",
		Before:     "def forward(self, x):\n    self.features.append(self.stage(x))",
		After:      "def forward(self, x):\n    features = [self.stage(x)]",
		Workloads:  []string{"L30", "L33", "L34", "L35", "L36"},
		References: []string{"pytorch#46386"},
		clues: []clue{
			held(2, "list", "attribute", "closure"),
			held(-1, "map"), // has them by a key: a cache
			inForward(3),
			named(2, "feature", "activation", "hidden state", "embedding", "pyramid", "intermediate", "representation"),
			owned(1, snapshot.OwnedByUser, "only the program's own references hold them"),
			together(-2, 4),
			unheld(-2),
			shaped(-4, "growth is of the second order", Quadratic),
			shaped(-6, "they are replaced by larger ones", BytesOnly, Doubling),
		},
	},
	{
		ID: "hook-not-removed", Name: "a hook is added again and again, and never removed",
		What:       "Each step, or each new instance of a module, registers a hook. Old hooks go on running, and hold what they closed over: activations, or a module that holds the hook.",
		Sign:       "Growth of the second order, since each hook adds another block in each step; or the parameters of a whole module for each instance.",
		Fix:        "register hooks once; or keep the handle and remove it after the step; or let a hook refer to its module weakly",
		Before:     "for batch in loader:\n    layer.register_forward_hook(lambda m, i, o: acts.append(o))",
		After:      "handle = layer.register_forward_hook(keep_last)\n...\nhandle.remove()",
		Workloads:  []string{"L09", "L10"},
		References: []string{"opacus#176", "pytorch#82528", "pytorch#46386", "pytorch#63211"},
		objects:    true,
		clues: []clue{
			// What is called a handler or a callback may be a log or a queue, and a function that is called hook may be anything.
			need(anyOf(
				holderNamed(7, "hook", "on forward", "on backward"),
				both(whereNoHolder(function(5, "hook", "on forward", "on backward")), shaped(2, "growth is of the second order", Quadratic)),
				modules(2),
				unheld(2),
				shaped(2, "growth is of the second order: each step adds more than the one before", Quadratic),
			)),
			named(2, "callback", "listener", "observer", "handler"),
		},
	},
	{
		ID: "metric-copies", Name: "a metric is copied to be computed, and the copies stay",
		What:       "A metric's state is cloned for each batch, epoch or evaluation, so that computing it does not disturb the running one, and the clones are kept.",
		Sign:       "Small blocks of constant size, a stack for each place that copies, at the pace of that place: step, epoch, evaluation.",
		Fix:        "compute in place, and let go of the copy; the values are the same to the bit",
		Before:     "results.append(metric.clone())\nresults[-1].compute()",
		After:      "results.append(metric.compute().item())",
		Workloads:  []string{"L11"},
		References: []string{"composer#3153", "composer#3180"},
		clues: []clue{
			need(named(5, metricWords...)),
			need(within(5, "they are copies of its state", copyWords...)),
			held(1, "list", "map"),
		},
	},
	{
		ID: "metric-not-reset", Name: "a metric that lists what it saw is never reset",
		What:       "The metric appends scores and labels of each batch to its state, so that it can be computed over all of them. Without a reset the list holds the whole run.",
		Sign:       "Blocks of a batch's scores, born in the metric's update, that do not die where the epoch ends.",
		Fix:        "call reset() after compute(), at the end of each epoch; or use a metric with a state of fixed size (thresholds, bins)",
		Before:     "metric.update(scores, labels)\nvalue = metric.compute()",
		After:      "metric.update(scores, labels)\nvalue = metric.compute()\nmetric.reset()",
		Workloads:  []string{"L12"},
		References: []string{"torchmetrics#3294", "torchmetrics#1949", "torchmetrics#2481"},
		objects:    true,
		clues: []clue{
			need(named(5, metricWords...)),
			within(3, "they are added by its update", "update", "append", "add", "extend", "observe", "accumulate", "collect", "push"),
			held(1, "list", "map"),
			within(-4, "they are copies", copyWords...),
		},
	},
	{
		ID: "outputs-kept", Name: "the loop keeps what each step returned",
		What:       "Outputs of training, validation or test steps are collected on the device for a summary, and nobody lets go of them after it.",
		Sign:       "It grows with each step, or in evaluations only, and never drops. If the next evaluation replaces it, it is a plateau and no leak.",
		Fix:        "append only what the summary needs, a number or a copy on the host, and clear the list after each epoch or evaluation",
		Before:     "self.outputs.append(logits)",
		After:      "self.outputs.append(logits.argmax(1).cpu())\n...\nself.outputs.clear()   # on_validation_epoch_end",
		Workloads:  []string{"L13"},
		References: []string{"lightning#8453", "lightning#1510", "lightning#5735", "transformers#13597"},
		clues: []clue{
			follows(4, "they are born in evaluations", Evaluations),
			named(3, "output", "prediction", "pred", "validation", "evaluate", "evaluated", "evaluation", "eval", "test step", "result"),
			returned(3),
			held(2, "list", "map"),
			named(-5, metricWords...),
			follows(-2, "it grows where checkpoints are saved", Checkpoints),
		},
	},
	{
		ID: "values-kept-as-tensors", Name: "numbers are kept as tensors",
		What:       "A log, a history or a progress bar keeps what it shows of each step as a tensor: a loss, a norm, predictions. Even a single number takes the allocator's smallest block, and a graph if it has one.",
		Sign:       "A small block each step, often of a few bytes requested, held in a list.",
		Fix:        "read the number out (.item(), float()) before it is kept, or hand it over and let go",
		Before:     "history.append(loss)",
		After:      "history.append(loss.item())",
		Workloads:  []string{"L26", "L37"},
		References: []string{"wandb#354", "lightning#4556"},
		clues: []clue{
			need(upTo(0, fewNumbers, "each is %s")),
			upTo(1, 128, "each is a few numbers, %s"),
			need(anyOf(upTo(3, 8, "each is a single number of %s"), named(4, logWords...))),
			held(1, "list", "closure"),
			owned(-2, snapshot.OwnedByCache, "a cache holds them"),
			follows(1, "one comes with each step", Steps),
			partly(-6, snapshot.OwnedByTape, "the autodiff graph holds them"),
		},
	},
	{
		ID: "error-holds-tensors", Name: "errors hold what had been computed",
		What:       "An error that is kept for later, or handled in place, keeps the frames of the call that failed and with them its tensors: a retry inside an except block runs with the failed attempt still in memory.",
		Sign:       "A step up at each failure, of blocks that were born in the step that failed.",
		Fix:        "leave the handler before you retry, and keep the error's text, not the error (or clear its __traceback__)",
		Before:     "except RuntimeError as e:\n    failures.append(e)\n    retry(batch)",
		After:      "except RuntimeError as e:\n    failures.append(str(e))\n    failed = True\nif failed:\n    retry(batch)",
		Workloads:  []string{"L21"},
		References: []string{"pytorch#18853", "pytorch#27600", "pytorch#82218"},
		objects:    true,
		clues: []clue{
			need(anyOf(
				named(6, "exception", "traceback", "except", "failure", "failed", "oom", "out of memory", "retry", "raise", "panic", "recover", "recovery"),
				both(named(6, "error", "err"), anyOf(perObject(1), severalParts(1))), // else what a model is wrong by
			)),
			follows(1, "they come at irregular steps", Irregular),
			held(1, "list", "map", "attribute"),
			perObject(1),
		},
	},
	{
		ID: "container-grows", Name: "a container that only grows",
		What: "The program puts something into a list, a map or a set again and again, and never takes anything out. " +
			"What it is for, its name does not tell; nothing is wrong with what is in it, but that it stays.",
		Sign:       "The holder has about as many items as blocks are live, and more at each snapshot.",
		Fix:        "take out what is not read any more, give it a bound (collections.deque(maxlen=…)), or clear it where an epoch or a request ends",
		Before:     "self.seen.append(result)",
		After:      "self.seen.append(result)\n...\nself.seen.clear()   # after what reads it",
		References: []string{"pytorch#46386"},
		objects:    true,
		plain:      true,
		last:       true,
		clues:      []clue{keepsAll(Least)},
	},
}
