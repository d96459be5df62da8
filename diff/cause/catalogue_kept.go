package cause

import "github.com/memdiag/memdiag/snapshot"

// Words of metrics, and of what logs.
var (
	metricWords = []string{
		"metric", "torchmetrics", "accuracy", "auroc", "auc", "precision", "recall", "f1", "confusion matrix", "bleu", "rouge", "perplexity", "iou", "fid", "meter",
	}
	logWords = []string{"log", "logger", "logged", "logging", "history", "wandb", "tensorboard", "tracker", "report", "losses", "curve", "journal"}
)

// moduleWords are names of functions that create a module's parameters.
var moduleWords = []string{"new linear", "new conv", "new embedding", "new module", "new model", "init", "reset parameter", "kaiming", "xavier", "uniform", "normal", "build model"}

// fewNumbers is the largest size of what a log records per step: a row of numbers. A larger tensor is an output or an
// activation.
const fewNumbers = 1024

// kept are causes in which a program retains results of each step.
var kept = []Cause{
	{
		ID: "activations-kept", Name: "activations retained after the step",
		What:       "The forward pass, or its caller, appends results to a container that outlives the step: a list on the module, a feature bank. torch.no_grad() is no fix: it would also remove the gradients.",
		Sign:       "One or a few stacks of the forward pass grow by a block or more per call. Other stacks do not grow with them.",
		Fix:        "store only the tensors that the head reads, in a local variable, or clear the list at the start of each forward",
		Before:     "def forward(self, x):\n    self.features.append(self.stage(x))",
		After:      "def forward(self, x):\n    features = [self.stage(x)]",
		Workloads:  []string{"L30", "L33", "L34", "L35", "L36"},
		References: []string{"pytorch#46386"},
		clues: []clue{
			held(2, "list", "attribute", "closure"),
			held(-1, "map"), // a map with keys is a cache
			inForward(3),
			named(2, "feature", "activation", "hidden state", "embedding", "pyramid", "intermediate", "representation"),
			owned(1, snapshot.OwnedByUser, "only the program refers to them"),
			together(-2, 4),
			unheld(-2),
			shaped(-4, "growth gets faster", Quadratic),
			shaped(-6, "they are replaced by larger ones", BytesOnly, Doubling),
		},
	},
	{
		ID: "hook-not-removed", Name: "a hook is added again and again, and never removed",
		What:       "Each step, or each new instance of a module, registers a hook. Old hooks keep running, and hold the variables of their closure: activations, or a module that holds the hook.",
		Sign:       "Growth gets faster, because each hook adds another block in each step. Or each instance adds the parameters of a whole module.",
		Fix:        "register hooks once; or store the handle and remove the hook after the step; or let the hook hold its module by a weak reference",
		Before:     "for batch in loader:\n    layer.register_forward_hook(lambda m, i, o: acts.append(o))",
		After:      "handle = layer.register_forward_hook(keep_last)\n...\nhandle.remove()",
		Workloads:  []string{"L09", "L10"},
		References: []string{"opacus#176", "pytorch#82528", "pytorch#46386", "pytorch#63211"},
		objects:    true,
		clues: []clue{
			// A "handler" or "callback" may be a log or a queue, and a function called "hook" may be anything.
			need(anyOf(
				holderNamed(7, "hook", "on forward", "on backward"),
				both(whereNoHolder(function(5, "hook", "on forward", "on backward")), shaped(2, "growth gets faster", Quadratic)),
				modules(2),
				unheld(2),
				shaped(2, "growth gets faster: each step adds more than the one before", Quadratic),
			)),
			named(2, "callback", "listener", "observer", "handler"),
		},
	},
	{
		ID: "metric-copies", Name: "copies of a metric's state are never released",
		What:       "The program copies a metric's state for each batch, epoch or evaluation, so that computing it does not change the running metric. The copies stay.",
		Sign:       "Small blocks of constant size. Each line that copies grows at its own interval: step, epoch or evaluation.",
		Fix:        "compute the metric without a copy, or release the copy; the values are the same to the last bit",
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
		ID: "metric-not-reset", Name: "a metric that stores every batch is never reset",
		What:       "The metric appends the scores and labels of each batch to its state. Without a reset, the state grows for the whole run.",
		Sign:       "Blocks of the size of a batch's scores, allocated in the metric's update. They stay at the end of the epoch.",
		Fix:        "call reset() after compute(), at the end of each epoch; or use a metric whose state has a fixed size (thresholds, bins)",
		elsewhere:  [3]string{1: "reset it after it is read, or store a sum or bins instead of every value"},
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
		ID: "outputs-kept", Name: "the loop retains the output of each step",
		What:       "The loop collects outputs of training, validation or test steps on the device for a summary, and does not release them afterwards.",
		Sign:       "It grows at each step, or in evaluations only, and never falls. If the next evaluation replaces the outputs, it is no leak.",
		Fix:        "append only numbers or copies on the host, and clear the list after each epoch or evaluation",
		Before:     "self.outputs.append(logits)",
		After:      "self.outputs.append(logits.argmax(1).cpu())\n...\nself.outputs.clear()   # on_validation_epoch_end",
		Workloads:  []string{"L13"},
		References: []string{"lightning#8453", "lightning#1510", "lightning#5735", "transformers#13597"},
		clues: []clue{
			follows(4, "they are allocated in evaluations", Evaluations),
			named(3, "output", "prediction", "pred", "validation", "evaluate", "evaluated", "evaluation", "eval", "test step", "result"),
			returned(3),
			held(2, "list", "map"),
			named(-5, metricWords...),
			follows(-2, "it grows when checkpoints are saved", Checkpoints),
		},
	},
	{
		ID: "values-kept-as-tensors", Name: "numbers are stored as tensors",
		What:       "A log, a history or a progress bar stores values of each step as tensors: a loss, a norm, predictions. Even a single number takes the allocator's smallest block, and holds its graph if it has one.",
		Sign:       "One small block per step, often of a few requested bytes, held in a list.",
		Fix:        "convert it to a number (.item(), float()) before you store it",
		Before:     "history.append(loss)",
		After:      "history.append(loss.item())",
		Workloads:  []string{"L26", "L37"},
		References: []string{"wandb#354", "lightning#4556"},
		clues: []clue{
			need(upTo(0, fewNumbers, "each is %s")),
			between(1, 8, 128, "each is a few numbers, %s"),
			need(anyOf(named(4, logWords...), upTo(4, 8, "each is a single number of %s"))),
			held(1, "list", "closure"),
			owned(-2, snapshot.OwnedByCache, "a cache holds them"),
			follows(1, "each step adds one", Steps),
			partly(-6, snapshot.OwnedByTape, "the autograd graph holds them"),
			withNodes(-6),
		},
	},
	{
		ID: "error-holds-tensors", Name: "stored exceptions hold tensors",
		What:       "While an exception is stored or handled, it holds the frames of the failed call, and with them the tensors. A retry inside an except block runs with the failed attempt still in memory.",
		Sign:       "Each failure adds blocks of the step that failed.",
		Fix:        "leave the except block before you retry, and store the exception's text, not the exception (or clear its __traceback__)",
		Before:     "except RuntimeError as e:\n    failures.append(e)\n    retry(batch)",
		elsewhere:  [3]string{"stored exceptions hold objects"},
		After:      "except RuntimeError as e:\n    failures.append(str(e))\n    failed = True\nif failed:\n    retry(batch)",
		Workloads:  []string{"L21"},
		References: []string{"pytorch#18853", "pytorch#27600", "pytorch#82218"},
		objects:    true,
		clues: []clue{
			need(anyOf(
				named(6, "exception", "traceback", "except", "failure", "failed", "oom", "out of memory", "retry", "raise", "panic", "recover", "recovery"),
				both(named(6, "error", "err"), anyOf(perObject(1), severalParts(1))), // otherwise it is a model's error
			)),
			follows(1, "they appear at irregular steps", Irregular),
			held(1, "list", "map", "attribute"),
			perObject(1),
		},
	},
	{
		ID: "chain-grows", Name: "objects that retain each other in a chain",
		What:       "Each new object refers to the one before it: a state to the previous state, a function to the function that it wraps, an exception to its cause. The newest object retains all.",
		Sign:       "The holder is a chain: one attribute, or one variable of a closure, leads from object to object.",
		Fix:        "set the reference to None once nothing reads what is older, or store the values that are read and not the object",
		Before:     "state = State(previous=state)",
		After:      "state = State(previous=state)\nstate.previous.previous = None   # nothing reads what is older",
		References: []string{"xstate#1023"},
		objects:    true,
		plain:      true,
		clues:      []clue{need(held(4, "chain"))},
	},
	{
		ID: "container-grows", Name: "a container that only grows",
		What:       "The program adds items to a list, a map or a set, and never removes any. Its name does not show what it is for.",
		Sign:       "The holder has about one item for each live block, and more at each snapshot.",
		Fix:        "remove items that are no longer read, set a bound (collections.deque(maxlen=…)), or clear it at the end of an epoch or a request",
		elsewhere:  [3]string{1: "remove items that are no longer read, set a bound (collections.deque(maxlen=…)), or clear it after each request"},
		Before:     "self.seen.append(result)",
		After:      "self.seen.append(result)\n...\nself.seen.clear()   # after what reads it",
		References: []string{"pytorch#46386"},
		objects:    true,
		plain:      true,
		last:       true,
		clues:      []clue{keepsAll(Least)},
	},
}
