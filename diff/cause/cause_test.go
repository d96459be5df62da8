package cause

import (
	"regexp"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// calls makes frames, innermost first, of "function file" pairs.
func calls(lines ...string) []snapshot.Frame {
	var frames []snapshot.Frame
	for i, l := range lines {
		function, file, _ := strings.Cut(l, " ")
		frames = append(frames, snapshot.Frame{Function: function, File: file, Line: 10 + i})
	}
	return frames
}

// torch are the frames below a line of the user's in PyTorch.
const torchLinear = "linear /usr/lib/python3/site-packages/torch/nn/functional.py"

// site is one that grew by n blocks of a size, with the user's code from frame
// headline on.
func site(headline int, n int64, each snapshot.Bytes, frames ...string) Site {
	return Site{Frames: calls(frames...), Headline: headline, Live: n, Blocks: n, Requested: snapshot.Bytes(n) * each}
}

func (s Site) heldBy(kind, path string, items int) Site {
	s.Holders = append(s.Holders, snapshot.Holder{Kind: kind, Path: path, Items: items})
	return s
}

func (s Site) ownedBy(o snapshot.Owners) Site {
	s.Owners = o
	return s
}

func (s Site) with(change func(*Site)) Site {
	change(&s)
	return s
}

func leak(sites ...Site) Evidence { return Evidence{Sites: sites, Leaking: true} }

func (e Evidence) following(d Driver) Evidence {
	e.Driver = d
	return e
}

func (e Evidence) with(change func(*Evidence)) Evidence {
	change(&e)
	return e
}

func TestTheBestCauseIsNamedFirst(t *testing.T) {
	const (
		tape  = snapshot.OwnedByTape
		user  = snapshot.OwnedByUser
		cache = snapshot.OwnedByCache
	)
	for _, c := range []struct {
		name string
		e    Evidence
		want string // "" for none
	}{
		{"a scalar a step on a list that logs", leak(site(1, 80, 4, torchLinear, "log_step runner.py").heldBy("list", "Monitor.loss_log", 80)).following(Steps), "values-kept-as-tensors"},
		{"several tape-only stacks under a loss that is summed up", leak(
			site(1, 80, 4096, "engine.(*Eager).MatMul engine/eager.go", "main.(*net).forward net.go").ownedBy(tape),
			site(1, 80, 2048, "engine.(*Eager).Mul engine/eager.go", "main.addLoss main.go").ownedBy(tape),
		).with(func(e *Evidence) { e.Backward, e.Head = Yes, Yes }), "graph-retained"},
		{"forward passes in a run with no gradient at all", leak(
			site(1, 80, 4096, "engine.(*Eager).MatMul engine/eager.go", "main.rollout main.go").ownedBy(tape | user),
		).with(func(e *Evidence) { e.Backward, e.Head = No, Yes }), "pending-graph"},
		{"small records of leaves", leak(
			site(1, 160, 72, "autodiff.(*Ops).Track engine/autodiff.go", "main.(*sgd).replace sgd.go").ownedBy(tape),
		).with(func(e *Evidence) { e.Backward, e.Head = Yes, No }), "tape-nodes-orphaned"},
		{"a sum that a list keeps, and the constants that its graph has saved", leak(
			site(0, 567, 4, "main train.py").heldBy("list", "main.<locals>.kept", 577),
			site(-1, 52, 8).heldBy("graph", "main.<locals>.kept", 577).ownedBy(tape),
		), "graph-retained"},
		{"a tensor tracked inside the loss", leak(
			site(1, 160, 72, "autodiff.(*Ops).Track engine/autodiff.go", "main.lossOf main.go").ownedBy(tape),
		).with(func(e *Evidence) { e.Backward, e.Head = Yes, No }), "gradient-never-used"},
		{"gradients of old steps beside a graph that backward made", leak(
			site(1, 30, 4096, "autodiff.(*Ops).Backward engine/backward.go", "main.penalty main.go").ownedBy(snapshot.OwnedByGrad),
			site(1, 30, 4, "autodiff.(*Ops).Backward engine/backward.go", "main.penalty main.go").ownedBy(tape),
		).with(func(e *Evidence) { e.Backward, e.Head = Yes, No }), "gradient-graph-cycle"},
		{"a penalty that a list keeps with its graph", leak(
			site(1, 228, 16384, "batch common.py", "main b2.py").heldBy("graph", "main.<locals>.norms", 228).ownedBy(tape),
			site(1, 228, 4, "main b2.py").heldBy("list", "main.<locals>.norms", 228),
			site(2, 228, 16384, "torch::autograd::backward ??", "_engine_run_backward /x/site-packages/torch/autograd/graph.py", "main b2.py").heldBy("graph", "main.<locals>.norms", 228).ownedBy(tape),
			site(2, 228, 16384, "backward /x/site-packages/torch/autograd/__init__.py", "_engine_run_backward /x/site-packages/torch/autograd/graph.py", "main b2.py").ownedBy(tape),
		), "graph-retained"},
		{"tracebacks, in a list whose name says little", leak(
			site(0, 107, 65536, "one b3.py").heldBy("list", "__main__.errors", 107),
			site(1, 107, 4096, torchLinear, "forward net.py", "one b3.py").heldBy("list", "__main__.errors", 107),
		), "error-holds-tensors"},
		{"residuals, each of one stack", leak(site(1, 107, 4096, torchLinear, "forward net.py").heldBy("list", "__main__.errors", 107)), "activations-kept"},
		{"optimizers that a dict of trials keeps", leak(
			site(1, 160, 65536, "_init_group /x/site-packages/torch/optim/adam.py", "trial a2.py").heldBy("dict", "__main__.trials", 8),
			site(1, 160, 65536, "__init__ /x/site-packages/torch/nn/modules/linear.py", "net common.py", "trial a2.py").heldBy("dict", "__main__.trials", 8),
		), "cache-without-bound"},
		{"what a recomputation stores", leak(
			site(2, 30, 4096, "relu /x/site-packages/torch/nn/functional.py", "recompute_fn /x/site-packages/torch/utils/checkpoint.py", "block model.py"),
		), "checkpoint-storage"},
		{"outputs on operations of their own", leak(
			site(1, 40, 4096, "engine.(*Eager).Exp engine/eager.go", "ops.(*Gelu).Forward gelu.go").heldBy("list", "Net.calls[].out", 40).ownedBy(user),
		), "saved-on-the-op"},
		{"features on the module", leak(
			site(1, 40, 1<<20, torchLinear, "forward fpn.py").heldBy("list", "FPN.kept", 40),
		).following(Steps), "activations-kept"},
		{"blocks of a forward pass, and nobody looked for holders", leak(site(1, 40, 1<<20, torchLinear, "forward fpn.py")), "activations-kept"},
		{"a list that a test fills, which pytest calls by its hooks", leak(
			site(0, 100, 3000, "train test_train.py", "test_keeps test_train.py", "pytest_pyfunc_call /x/site-packages/_pytest/python.py", "__call__ /x/site-packages/pluggy/_hooks.py").heldBy("list", "test_train.kept", 100),
		).with(func(e *Evidence) { e.Objects = true }), "container-grows"},
		{"a list that a task fills, in a worker of a ProcessPoolExecutor", leak(
			site(0, 862, 60<<10, "task tasks.py", "_process_worker /usr/lib/python3.11/concurrent/futures/process.py", "Popen._launch /usr/lib/python3.11/multiprocessing/popen_fork.py",
				"ProcessPoolExecutor._spawn_process /usr/lib/python3.11/concurrent/futures/process.py", "<module> tasks.py").heldBy("list", "__main__.keep", 1074),
		).with(func(e *Evidence) { e.Objects = true }), "container-grows"},
		{"a forward hook that adds hooks", leak(
			site(1, 800, 1024, "mean /x/site-packages/torch/_tensor.py", "save_hook probe.py"),
		).with(func(e *Evidence) { e.Shape = Quadratic }), "hook-not-removed"},
		{"a cache that a function called hook fills", leak(
			site(0, 150, 16384, "hook run.py", "train base.py").heldBy("dict", "__main__.cache", 150),
		), "cache-without-bound"},
		{"a function called hook, and nobody looked for holders", leak(site(0, 150, 16384, "hook run.py", "train base.py")), ""},
		{"a list of hooks", leak(
			site(0, 150, 16384, "attach run.py", "train base.py").heldBy("dict", "__main__.model._forward_hooks", 150),
		), "hook-not-removed"},
		{"clones of a torchmetrics metric", leak(
			site(2, 20, 8, "detach /x/site-packages/torch/_tensor.py", "clone /x/site-packages/torchmetrics/metric.py", "on_epoch run.py").heldBy("list", "Run.old", 20),
		).following(Epochs), "metric-copies"},
		{"the list of a torchmetrics metric", leak(
			site(2, 20, 256, "cat /x/site-packages/torchmetrics/utilities/data.py", "update /x/site-packages/torchmetrics/classification/auroc.py", "training_step run.py"),
		).following(Steps), "metric-not-reset"},
		{"losses of a training step, which Lightning calls through its plugin for precision", leak(
			site(2, 193, 4, "Mod.training_step lit.py", "Precision._wrap_closure /x/site-packages/lightning/pytorch/plugins/precision/precision.py", "<module> lit.py").heldBy("list", "model.outs", 193),
		).following(Steps), "values-kept-as-tensors"},
		{"outputs of evaluations", leak(
			site(1, 60, 4096, torchLinear, "validation_step lit.py").heldBy("list", "Lit.val_outs", 60),
		).following(Evaluations), "outputs-kept"},
		{"what a failed batch computed", leak(
			site(1, 9, 4096, torchLinear, "try_batch train.py").heldBy("list", "Runner.exceptions[].args", 9),
		).following(Irregular), "error-holds-tensors"},
		{"what a model was wrong by", leak(
			site(1, 80, 128, "sub /x/site-packages/torch/_tensor.py", "train run.py").heldBy("list", "train.<locals>.errors", 80),
		).following(Steps), "container-grows"},
		{"a library's wrapper that would checkpoint if it were asked to", leak(
			site(2, 30, 4096, "linear /x/site-packages/torch/nn/functional.py", "forward /x/site-packages/transformers/models/bert/modeling_bert.py", "forward_with_checkpointing /x/site-packages/transformers/modeling_layers.py", "forward model.py", "train train.py").heldBy("list", "main.kept", 30),
		), "activations-kept"},
		{"what a library that saves checkpoints copied", leak(
			site(0, 30, 4096, "clone /x/site-packages/torch/_tensor.py", "_stage /x/site-packages/torch/distributed/checkpoint/staging.py", "async_save /x/site-packages/torch/distributed/checkpoint/state_dict_saver.py", "train train.py").heldBy("list", "main.pending", 30),
		), "staging-kept"},
		{"what a callback that saves checkpoints kept", leak(
			site(0, 30, 64, "detach /x/site-packages/torch/_tensor.py", "_save_topk_checkpoint /x/site-packages/lightning/pytorch/callbacks/model_checkpoint.py", "train train.py").heldBy("dict", "main.callback.scores", 30),
		), "model-copies-kept"},
		{"gradients of gradients that no name leads to", leak(
			site(2, 30, 4096, "_engine_run_backward /x/site-packages/torch/autograd/graph.py", "step train.py").heldBy("graph", "(no name leads to it)", 0),
		), "gradient-graph-cycle"},
		{"a function of the program's own that is called checkpoint", leak(
			site(2, 40, 4096, "clone /x/site-packages/torch/_tensor.py", "checkpoint find_rate.py").heldBy("list", "Finder.history[]", 40),
		), "model-copies-kept"},
		{"copies of all parameters at each epoch", leak(
			site(1, 40, 4096, "clone /x/site-packages/torch/_tensor.py", "remember_best train.py").heldBy("list", "Trainer.history[]", 4),
		).following(Epochs), "model-copies-kept"},
		{"copies staged at each save", leak(
			site(1, 40, 4096, "engine.(*Eager).Copy engine/eager.go", "io.(*AsyncWriter).Stage writer.go").ownedBy(cache),
		).following(Checkpoints), "staging-kept"},
		{"moments that only the optimizer holds", leak(
			site(1, 8, 4096, "engine.(*Eager).Full engine/eager.go", "main.swapHead main.go").ownedBy(snapshot.OwnedByOptim),
		).following(Epochs), "optimizer-state-stale"},
		{"moments of an optimizer of PyTorch, which wraps each step in what it calls a hook", leak(
			site(3, 480, 4096, "Adam._init_group /x/site-packages/torch/optim/adam.py", "Adam.step /x/site-packages/torch/optim/adam.py",
				"Optimizer.profile_hook_step.<locals>.wrapper /x/site-packages/torch/optim/optimizer.py", "run_fold folds.py").heldBy("dict", "run_fold.<locals>.opt.state", 6),
		), "optimizer-state-stale"},
		{"a metric that a closure of the optimizer's step resets", leak(
			site(4, 40, 4096, "zeros /x/site-packages/torch/_tensor.py", "Metric.reset /x/site-packages/torchmetrics/metric.py", "optimizer_step /x/site-packages/lightning/pytorch/core/module.py", "Adam.step /x/site-packages/torch/optim/adam.py", "fit run.py"),
		), "metric-not-reset"},
		{"blocks at irregular steps that are all on one list", leak(
			site(1, 9, 4096, "softmax /x/site-packages/torch/nn/functional.py", "score train.py").ownedBy(user).heldBy("list", "Keeper.suspects", 9),
		).following(Irregular), "activations-kept"},
		{"blocks at irregular steps of which a list has few", leak(
			site(1, 57, 4096, "softmax /x/site-packages/torch/nn/functional.py", "score train.py").ownedBy(user).heldBy("list", "Keeper.suspects", 2),
		).following(Irregular), "release-forgotten"},
		{"blocks at irregular steps on a list of what is lent", leak(
			site(1, 9, 4096, "softmax /x/site-packages/torch/nn/functional.py", "score train.py").ownedBy(user).heldBy("list", "Lender.outstanding", 9),
		).following(Irregular), "release-forgotten"},
		{"blocks of each step whose handles are gone, in a function named after a cache", leak(
			site(1, 9, 4096, "softmax /x/site-packages/torch/nn/functional.py", "cached train.py").ownedBy(user).with(func(s *Site) { s.Lost = true }),
		).following(Steps), "release-forgotten"},
		{"large blocks on a list that is called a log", leak(
			site(1, 9, 8192, torchLinear, "work runner.py").heldBy("list", "Monitor.log_cache", 9),
		).following(Steps), "cache-without-bound"},
		{"a map by length", leak(
			site(1, 90, 4096, torchLinear, "positions model.py").heldBy("map", "Encoder.by_length", 90),
		), "cache-without-bound"},
		{"a replay buffer", leak(
			site(1, 90, 4096, "clone /x/site-packages/torch/_tensor.py", "push replay_buffer.py").heldBy("list", "Agent.replay.items", 90),
		), "cache-without-bound"},
		{"a tensor that is concatenated to itself", leak(
			site(1, 0, 0, "cat /x/site-packages/torch/functional.py", "append kv.py"),
		).with(func(e *Evidence) { e.Shape = BytesOnly }), "cache-regrown"},
		{"batches that wait", leak(
			site(1, 90, 4096, "to /x/site-packages/torch/_tensor.py", "prefetch loader.py").heldBy("list", "Prefetcher.queue", 90),
		), "queue-without-bound"},
		{"weights in half precision", leak(
			site(2, 90, 4096, "to /x/site-packages/torch/_tensor.py", "cached_cast /x/site-packages/torch/amp/autocast_mode.py", "step train.py"),
		), "cast-context-open"},
		{"blocks left at irregular steps", leak(
			site(1, 9, 4096, "softmax /x/site-packages/torch/nn/functional.py", "score train.py").ownedBy(user),
		).following(Irregular), "release-forgotten"},
		{"blocks left at irregular steps by Python, which releases nothing by hand", leak(
			site(1, 9, 4096, "softmax /x/site-packages/torch/nn/functional.py", "score train.py"),
		).following(Irregular), ""},
		{"a collective's buffers", leak(
			site(2, 90, 4096, "empty ??", "all_gather /x/site-packages/torch/distributed/distributed_c10d.py", "step train.py"),
		), "collective-buffers-kept"},
		{"what a program of one process gathers by index", leak(
			site(1, 90, 4096, "gather /x/site-packages/torch/_tensor.py", "pick topk.py"),
		).following(Steps), ""},
		{"a backward pass's blocks, whose engine evaluates functions", leak(
			site(1, 90, 4096, "torch::autograd::generated::MulBackward0::apply ??", "torch::autograd::Engine::evaluate_function(GraphTask&) ??"),
		).following(Steps), ""},
		{"PyTorch's own calls, whatever their names say", leak(
			site(1, 90, 4096, "torch::autograd::validate_outputs_impl ??", "at::_ops::addmm::redispatch ??"),
			site(1, 90, 4096, "at::TensorIteratorBase::build_borrowing_binary_op ??", "run_eval_code_obj ??", "pick topk.py"),
		).following(Steps), ""},
		{"a batch of a loader's, which came out of its queue", leak(
			site(4, 90, 4096, "_new_shared /x/site-packages/torch/storage.py", "Queue.get /usr/lib/python3.11/multiprocessing/queues.py",
				"_MultiProcessingDataLoaderIter._get_data /x/site-packages/torch/utils/data/dataloader.py", "__next__ /x/site-packages/torch/utils/data/dataloader.py",
				"main train.py").heldBy("list", "main.<locals>.seen", 90),
		).following(Steps), "container-grows"},
		{"the output of a compiled graph", leak(
			site(3, 90, 4096, "OpOverload.__call__ /x/site-packages/torch/_ops.py", "CompiledFunction.forward /x/site-packages/torch/_functorch/_aot_autograd/runtime_wrappers.py",
				"Module._call_impl /x/site-packages/torch/nn/modules/module.py", "main train.py").heldBy("list", "__main__.outs", 90),
		).following(Steps), "container-grows"},
		{"names of types and of Python's own calls", leak(
			site(1, 90, 4096, "at::_ops::index_Tensor::call(c10::List<CompileTimeCache>) ??", "PyType_GetModule ??", "pick topk.py"),
		).following(Steps), ""},
		{"unsharded parameters", leak(
			site(2, 9, 1<<28, "all_gather_into_tensor ??", "unshard /x/site-packages/torch/distributed/fsdp/_flat_param.py", "step train.py"),
		), "unsharded-kept"},
		{"entries on the host beside a flat device", leak(
			site(1, 9, 48, "engine.Track engine/track.go", "main.step main.go"),
		).with(func(e *Evidence) { e.Host = true }), "host-index"},
		{"blocks that no one saw allocated", leak(Site{Headline: -1, Live: 9, Blocks: 9, Requested: 4096}), "before-recording"},
		{"norms under an average's name", leak(site(1, 90, 4, "_get_total_norm /x/site-packages/torch/nn/utils/clip_grad.py", "train train.py").heldBy("list", "__main__.ema", 90)), "values-kept-as-tensors"},
		{"live blocks in a graph's pool", leak(Site{Frames: calls("empty ??", "run train.py"), Headline: 1, Blocks: 3, Requested: 12 << 10, Private: true}), "pool-kept-live"},
		{"optimizer state that settled", Evidence{Settled: true, Sites: []Site{site(1, 4, 4096, "_init_group /x/site-packages/torch/optim/adam.py", "main train.py")}}, "optimizer-state"},
		{"a meter of pending blocks", Evidence{Meter: PendingFree}, "pending-free"},
		{"a meter of fragments", Evidence{Meter: Fragmentation}, "fragmentation"},
		{"a dict of Python's", leak(
			site(1, 90, 4096, torchLinear, "rotate turn.py").heldBy("dict", "__main__._grids", 91),
		), "cache-without-bound"},
		{"a list that only grows, and has no telling name", leak(
			site(1, 60, 4096, torchLinear, "see work.py").heldBy("list", "main.<locals>.worker.hard", 64),
		), "container-grows"},
		{"arrays of Python's heap on a list with no telling name", leak(
			site(0, 60, 4096, "see work.py").heldBy("list", "Worker.hard", 64),
		).with(func(e *Evidence) { e.Objects = true }), "container-grows"},
		{"strings of Python's heap on a list that logs, which are no tensors", leak(
			site(0, 60, 90, "add work.py").heldBy("list", "Worker.log_lines", 64),
		).following(Steps).with(func(e *Evidence) { e.Objects = true }), "container-grows"},
		{"a list that has few of the blocks", leak(
			site(0, 60, 4096, "see work.py").heldBy("list", "Worker.hard", 4),
		).with(func(e *Evidence) { e.Objects = true }), ""},
		{"what a set of queues stores, by whatever name", leak(
			site(1, 900, 32, "Queue.put_nowait /usr/lib/python3.11/asyncio/queues.py", "Broadcaster.publish news.py", "<module> news.py").heldBy("set", "main.<locals>.broadcaster.subscribers", 20),
		).with(func(e *Evidence) { e.Objects = true }), "queue-without-bound"},
		{"an object with a queue of its own, which stores little", leak(
			site(2, 900, 4096, "open_file /x/site-packages/tensorboardX/record_writer.py", "add_scalars /x/site-packages/tensorboardX/writer.py", "<module> train.py").heldBy("dict", "__main__.writer.all_writers", 265),
			site(2, 900, 96, "Queue.put /usr/lib/python3.11/multiprocessing/queues.py", "add_scalars /x/site-packages/tensorboardX/writer.py", "<module> train.py").heldBy("dict", "__main__.writer.all_writers", 265),
		).with(func(e *Evidence) { e.Objects = true }), "cache-without-bound"},
		{"a queue's deque in an object that is called a writer", leak(
			site(0, 300, 2048, "main log.py").heldBy("deque", "Writer.pending.queue", 371),
		).following(Steps), "queue-without-bound"},
		{"batches of a loader that a list holds, which is no queue", leak(
			site(2, 700, 4608, "collate_tensor_fn /x/site-packages/torch/utils/data/_utils/collate.py", "Loaders.fetch /x/site-packages/lightning/loaders.py", "<module> train.py").heldBy("list", "__main__.hardest", 700),
		).following(Steps).with(func(e *Evidence) { e.Drained = No }), "container-grows"},
		{"a list in a program whose file is called after outputs", leak(
			site(2, 700, 4608, "collate_tensor_fn /x/site-packages/torch/utils/data/_utils/collate.py", "Loaders.fetch /x/site-packages/lightning/loaders.py", "<module> keep_outputs.py").heldBy("list", "__main__.hardest", 700),
		).following(Steps), "container-grows"},
		{"batches of a loader that nobody was found to hold", leak(
			site(2, 700, 4608, "collate_tensor_fn /x/site-packages/torch/utils/data/_utils/collate.py", "prefetched /x/site-packages/lightning/loaders.py", "<module> train.py"),
		).following(Steps), ""},
		{"batches that leave a list in their order", leak(
			site(1, 90, 4096, "to /x/site-packages/torch/_tensor.py", "fill train.py").heldBy("list", "__main__.rows", 90),
		).following(Steps).with(func(e *Evidence) { e.Drained = Yes }), "queue-without-bound"},
		{"a deque from which nothing is taken", leak(
			site(0, 1500, 512, "<module> train.py").heldBy("deque", "__main__.recent.items", 1500),
		).following(Steps).with(func(e *Evidence) { e.Drained = No }), "container-grows"},
		{"batches that itertools.cycle keeps", leak(
			site(1, 800, 8192, "collate_tensor_fn /x/site-packages/torch/utils/data/_utils/collate.py", "<module> train.py").heldBy("list", "__main__.batches of itertools.cycle", 800),
		).following(Steps), "cycle-keeps"},
		{"threads that Python holds while they run", leak(
			site(0, 0, 0, "start poll.py").heldBy("dict", "threading._active", 783),
		).following(Steps), "threads-not-ended"},
		{"states that keep the one before, of which a window saw the newest", leak(
			site(0, 2973, 8192, "State.__init__ play.py").heldBy("chain", "__main__.state.previous…", 9),
		), "chain-grows"},
		{"models of which a list has several blocks an item, and takes them in", leak(
			site(0, 347, 6400, "objective tune.py").heldBy("list", "__main__.study.trials", 75).with(func(s *Site) { s.TakenIn = true }),
		), "container-grows"},
		{"a list of a class that is called a metric, by another name", leak(
			site(1, 60, 4096, torchLinear, "see work.py").heldBy("list", "MetricRunner.state.kept.rows", 64),
		), "container-grows"},
		{"records of a handler that logs, which is no hook", leak(
			site(0, 705, 1536, "main log.py").heldBy("list", "__main__.log.handlers[…].records", 705),
		).following(Steps), "container-grows"},
		{"callbacks that are queued, which is no sign of a hook", leak(
			site(0, 1613, 7680, "Trainer.fit fit.py").heldBy("list", "__main__.t.callbacks", 1613),
		).following(Steps), "container-grows"},
		{"ever more of a site of which nobody saw a stack", leak(Site{Headline: -1, Live: 350, Blocks: 350, Requested: 560000}).with(func(e *Evidence) { e.Shape = Quadratic }), "before-recording"},
		{"masks by a key in a forward pass", leak(
			site(0, 1295, 2360, "Attn.mask m.py", "Attn.forward m.py").heldBy("dict", "__main__.attn._masks", 1333),
		).following(Steps), "cache-without-bound"},
		{"observations of an environment, which are no numbers", leak(
			site(0, 2800, 64, "Env.step env.py").heldBy("list", "__main__.mem.memory", 2800),
		).following(Steps), "container-grows"},
		{"parameters of PyTorch that the optimizer's map has", leak(
			site(1, 374, 528, "Linear.__init__ /x/site-packages/torch/nn/modules/linear.py", "<module> tasks.py").heldBy("dict", "__main__.opt.state", 376),
		), "optimizer-state-stale"},
		{"optimizers that a library lists", leak(
			site(2, 480, 4096, "Adam._init_group /x/site-packages/torch/optim/adam.py", "Adam.step /x/site-packages/torch/optim/adam.py", "train_fold folds.py").heldBy("list", "__main__.accelerator._optimizers", 36).with(func(s *Site) { s.TakenIn = true }),
		), "container-grows"},
		{"samples that the loop lists, of a model whose last layer is in activation.py", leak(
			site(2, 249, 65536, "Tanh.forward /x/site-packages/torch/nn/modules/activation.py", "Sequential.forward /x/site-packages/torch/nn/modules/container.py", "<module> gan.py").heldBy("list", "__main__.grids", 249),
		), "outputs-kept"},
		{"outputs with their losses, which are small", leak(
			site(2, 364, 1280, "Linear.forward /x/site-packages/torch/nn/modules/linear.py", "Sequential.forward /x/site-packages/torch/nn/modules/container.py", "<module> train.py").heldBy("list", "__main__.history", 364),
			site(1, 364, 4, "cross_entropy /x/site-packages/torch/nn/functional.py", "<module> train.py").heldBy("list", "__main__.history", 364),
		).following(Steps), "outputs-kept"},
		{"a list that one hook fills", leak(
			site(2, 500, 8192, "ReLU.forward /x/site-packages/torch/nn/modules/activation.py", "Sequential.forward /x/site-packages/torch/nn/modules/container.py", "<module> watch.py").heldBy("list", "__main__.model.1._forward_hooks[2] closure seen", 500),
		), "activations-kept"},
		{"threads with their results, which have an __init__", leak(
			site(0, 5000, 16384, "Worker.run jobs.py").heldBy("list", "__main__.supervisor.workers", 2400),
			site(1, 4500, 300, "Thread.__init__ /usr/lib/python3.11/threading.py", "Worker.__init__ jobs.py").heldBy("list", "__main__.supervisor.workers", 2400),
		).with(func(e *Evidence) { e.Objects = true }), "container-grows"},
		{"models of several parts in a list of trials", leak(
			site(1, 829, 7000, "_engine_run_backward /x/site-packages/torch/autograd/graph.py", "objective study.py").heldBy("list", "__main__.study.trials", 200),
			site(1, 368, 14000, "Linear.__init__ /x/site-packages/torch/nn/modules/linear.py", "objective study.py").heldBy("list", "__main__.study.trials", 200),
		).following(Steps), "container-grows"},
		{"a variable called table, which has the last one", leak(
			site(0, 3652, 43, "<module> read.py").heldBy("variable", "__main__.table", 0),
		).with(func(e *Evidence) { e.Objects = true }), ""},
		{"what nothing holds while the collector of cycles is off", leak(
			site(2, 60, 4096, torchLinear, "forward /x/site-packages/torch/nn/modules/linear.py", "expand plan.py"),
		).with(func(e *Evidence) { e.CollectorOff = true }), "reference-cycle"},
		{"what a list holds while the collector of cycles is off", leak(
			site(1, 60, 4096, torchLinear, "expand plan.py").heldBy("list", "Planner.features", 64),
		).with(func(e *Evidence) { e.CollectorOff = true }), "activations-kept"},
		{"a function called collect_all that keeps blocks", leak(site(1, 60, 4096, torchLinear, "collect_all plan.py")), ""},
		{"a stack with no sign of anything", leak(site(1, 9, 4096, "empty ??", "work main.py")), ""},
		{"state that settled and is no optimizer's", Evidence{Settled: true, Sites: []Site{site(1, 4, 4096, torchLinear, "warm train.py")}}, ""},
		{"a loss that a trainer computes below an optimizer's step", Evidence{Settled: true, Sites: []Site{site(1, 4, 4,
			"ClosureResult._clone_loss /x/site-packages/lightning/pytorch/loops/automatic.py", "Adam.step /x/site-packages/torch/optim/adam.py", "main train.py")}}, ""},
		{"a collector at work in Python", Evidence{Settled: true, Sites: []Site{site(1, 1, 112, "collect gc.py", "main train.py")}}, "reference-cycle"},
		{"a collector at work in Go, which minds no cycles", Evidence{Settled: true, Sites: []Site{site(1, 1, 112, "runtime.gcStart runtime/mgc.go", "main.work main.go")}}, ""},
		{"nothing", Evidence{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fit := Matches(&c.e)
			got := ""
			if len(fit) > 0 {
				got = fit[0].Cause.ID
			}
			if got != c.want {
				for _, m := range fit {
					t.Logf("%s %d: %s", m.Cause.ID, m.Points, m.Why)
				}
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestALoaderThatStartsItsWorkersMakesNoModules: its calls are on the stacks of all that a forked worker loads.
func TestALoaderThatStartsItsWorkersMakesNoModules(t *testing.T) {
	e := leak(
		site(0, 120, 1<<16, "randn /x/site-packages/torch/_tensor.py", "Samples.__getitem__ train.py", "_MapDatasetFetcher.fetch /x/site-packages/torch/utils/data/_utils/fetch.py",
			"_worker_loop /x/site-packages/torch/utils/data/_utils/worker.py", "Popen.__init__ /usr/lib/python3.11/multiprocessing/popen_fork.py",
			"_MultiProcessingDataLoaderIter.__init__ /x/site-packages/torch/utils/data/dataloader.py", "train train.py").heldBy("dict", "train.<locals>.dataset.seen", 120),
	)
	if best := Matches(&e)[0]; best.Cause.ID != "cache-without-bound" || strings.Contains(best.Why, "modules") {
		t.Errorf("%s: %s", best.Cause.ID, best.Why)
	}
}

// TestWhatALibrarysDecoratorsAreCalledIsNoClue: the file of a wrapper is named after what the decorator does for all that it wraps.
func TestWhatALibrarysDecoratorsAreCalledIsNoClue(t *testing.T) {
	e := leak(site(4, 600, 5120, "cat /x/site-packages/torch/_tensor.py", "update /x/site-packages/transformers/cache_utils.py",
		"wrapper /x/site-packages/transformers/utils/output_capturing.py", "capture.<locals>.wrapper /x/site-packages/transformers/utils/output_capturing.py",
		"Chat.answer serve.py").heldBy("dict", "__main__.sessions", 300))
	for _, m := range Matches(&e) {
		if strings.Contains(m.Why, "wrapper") || strings.Contains(m.Why, "output_capturing") || m.Cause.ID == "cache-without-bound" && !strings.Contains(m.Why, "allocated in transformers/cache_utils.py") {
			t.Errorf("%s: %s", m.Cause.ID, m.Why)
		}
	}
}

func TestMatchesAreRankedAndReasoned(t *testing.T) {
	e := leak(site(1, 40, 4, torchLinear, "forward fpn.py").heldBy("list", "FPN.feature_log", 40)).following(Steps)
	fit := Matches(&e)
	if len(fit) < 2 {
		t.Fatalf("%d causes fit; want a choice", len(fit))
	}
	for i, m := range fit {
		if i > 0 && m.Points > fit[i-1].Points {
			t.Errorf("%s with %d points comes behind %d", m.Cause.ID, m.Points, fit[i-1].Points)
		}
		if m.Points < Least || m.Why == "" {
			t.Errorf("%s: %d points, reason %q", m.Cause.ID, m.Points, m.Why)
		}
		if m.Likely != strings.HasPrefix(m.Why, "likely: ") {
			t.Errorf("%s: likely is %t, and the reason begins %q", m.Cause.ID, m.Likely, m.Why)
		}
	}
}

func TestAReasonIsNotGivenTwice(t *testing.T) {
	e := leak(site(1, 40, 4096, torchLinear, "forward fpn.py").ownedBy(snapshot.OwnedByTape))
	for _, m := range Matches(&e) {
		if n := strings.Count(m.Why, "the autograd graph holds them"); n > 1 {
			t.Errorf("%s: %q", m.Cause.ID, m.Why)
		}
	}
	if fit := Matches(&e); len(fit) == 0 || !strings.Contains(fit[0].Why, "only the autograd graph holds them") {
		t.Errorf("got %+v", fit)
	}
}

// TestAListOfLossesIsNotCalledAGraph: its items have graphs, which hold the blocks.
func TestAListOfLossesIsNotCalledAGraph(t *testing.T) {
	e := leak(site(1, 40, 4096, torchLinear, "forward fpn.py").heldBy("graph", "__main__.losses", 40))
	if fit := Matches(&e); len(fit) == 0 || !strings.Contains(fit[0].Why, "the graphs in __main__.losses hold them") {
		t.Errorf("got %+v", fit)
	}
}

// TestFramesThatMostStacksShareTellNothing: a program that is called hook_train.py
// has no hook for that.
func TestFramesThatMostStacksShareTellNothing(t *testing.T) {
	s := site(1, 40, 4096, torchLinear, "work main.py", "run_with_hooks hook_train.py")
	e := leak(s)
	e.Shape = Quadratic
	if fit := Matches(&e); len(fit) == 0 || fit[0].Cause.ID != "hook-not-removed" {
		t.Fatalf("got %v; a frame of this stack alone is to count", fit)
	}
	s.Common = []bool{true, false, true}
	e = leak(s)
	e.Shape = Quadratic
	if fit := Matches(&e); len(fit) > 0 {
		t.Errorf("got %s: %s", fit[0].Cause.ID, fit[0].Why)
	}
}

// TestALibrarysNamesTellNothingOfObjects: rich draws a table on the way to the text that a console records.
func TestALibrarysNamesTellNothingOfObjects(t *testing.T) {
	e := leak(site(1, 4000, 60, "Table._render /venv/lib/python3/site-packages/rich/table.py", "main train.py").heldBy("list", "__main__.console._record_buffer", 4000))
	e.Objects, e.Plain = true, true
	if fit := Matches(&e); len(fit) == 0 || fit[0].Cause.ID != "container-grows" {
		t.Errorf("got %+v; want a container that grows", fit)
	}
}

// TestAReasonNamesAPlace: stacks of some recorders have files and no functions.
func TestAReasonNamesAPlace(t *testing.T) {
	e := leak(Site{Frames: []snapshot.Frame{{File: "/x/site-packages/torch/optim/adam.py", Line: 9}, {File: "main.py", Line: 3}}, Headline: 1, Live: 9, Blocks: 9, Requested: 999})
	fit := Matches(&e)
	if len(fit) == 0 || !strings.Contains(fit[0].Why, "an optimizer allocates them as its state in adam.py") {
		t.Errorf("got %+v; want a reason with the file", fit)
	}
}

func TestEveryEntryIsWhole(t *testing.T) {
	reference := regexp.MustCompile(`^[A-Za-z0-9_-]+#[0-9]+$`)
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		for what, text := range map[string]string{"name": c.Name, "what": c.What, "sign": c.Sign, "fix": c.Fix, "before": c.Before, "after": c.After} {
			if text == "" {
				t.Errorf("%s has no %s", c.ID, what)
			}
		}
		if strings.HasSuffix(c.Fix, ".") || !strings.HasSuffix(c.What, ".") || !strings.HasSuffix(c.Sign, ".") {
			t.Errorf("%s: what and sign are sentences, the fix is a clause", c.ID)
		}
		if len(c.References) == 0 || len(c.clues) == 0 {
			t.Errorf("%s has %d references and %d clues", c.ID, len(c.References), len(c.clues))
		}
		for _, r := range c.References {
			if !reference.MatchString(r) {
				t.Errorf("%s: %q is no reference", c.ID, r)
			}
		}
		if got := Find(c.ID); got == nil || got.ID != c.ID {
			t.Errorf("%s is not found by its id", c.ID)
		}
	}
	if Find("gremlins") != nil {
		t.Error("a cause that is not there is found")
	}
}

// A server has buffers and batches, too, and a tool its forward passes over text.
func TestWhatTrainsNothingHasNoCauseOfTraining(t *testing.T) {
	found := leak(site(0, 40, 4096, "main.(*Parser).forward parser.go").heldBy("list", "Parser.features", 40)).following(Steps)
	if fit := Matches(&found); len(fit) == 0 || fit[0].Cause.ID != "activations-kept" {
		t.Fatalf("got %+v", fit)
	}
	found.Plain = true
	if fit := Matches(&found); len(fit) != 1 || fit[0].Cause.ID != "container-grows" {
		t.Errorf("got %+v; want a container that grows", fit)
	}
}

// TestAProgramWithoutTensorsIsToldNothingOfThem: causes spoke of CUDA, epochs and graphs to one that had never imported PyTorch.
func TestAProgramWithoutTensorsIsToldNothingOfThem(t *testing.T) {
	foreign := regexp.MustCompile(`(?i)cuda|tensor|torch|epoch|loader|trial|model|lengths|thresholds`)
	for i := range catalogue {
		c := &plainly[i]
		if c.objects && c.plain || c.ID == "metric-not-reset" || c.ID == "reference-cycle" {
			if text := c.Name + "; " + c.Fix + "; " + c.Unplaced; foreign.MatchString(text) {
				t.Errorf("%s: %s", c.ID, text)
			}
		}
	}
	for none, fix := range map[bool]string{false: "record_memory_history", true: "compare two versions of it"} {
		fit := Matches(&Evidence{Meter: Host, NoTensors: none})
		if len(fit) != 1 || fit[0].Cause.ID != "host-only" || !strings.Contains(fit[0].Cause.Fix, fix) {
			t.Errorf("%v: %+v", none, fit)
		}
	}
}
