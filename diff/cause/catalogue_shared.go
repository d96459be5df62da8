package cause

import "github.com/memdiag/memdiag/snapshot"

// lifetimes are causes in which nobody releases a reference.
var lifetimes = []Cause{
	{
		ID: "release-forgotten", Name: "a code path that skips the release",
		What:       "A function releases a tensor at its end, and a rare branch leaves the function earlier: an early return, an error, a skipped batch.",
		Sign:       "One stack leaves blocks at irregular steps. Most of its blocks are freed in their own step.",
		Fix:        "release with defer, a scope or a context manager, right after the tensor is created",
		elsewhere:  [3]string{1: "release with defer, a scope or a context manager, right after it is allocated"},
		Before:     "probs := ops.Softmax(x).Keep()\nif sure(probs) {\n\treturn\n}\nprobs.Release()",
		After:      "probs := ops.Softmax(x).Keep()\ndefer probs.Release()\nif sure(probs) {\n\treturn\n}",
		Workloads:  []string{"L29"},
		References: []string{"pytorch#10348"},
		objects:    true,
		plain:      true,
		clues: []clue{
			need(anyOf(
				lost(9),
				byOwners(follows(4, "they stay at irregular steps", Irregular)),
				unheld(2),
			)),
			partly(1, snapshot.OwnedByUser, "a reference in the program holds them"),
			partly(-4, snapshot.OwnedByTape, "the autograd graph holds them"),
			partly(-2, snapshot.OwnedByCache, "a cache holds them"),
			gathered(-5),
			// A list of lent blocks is not what retains them.
			named(3, "borrow", "borrowed", "acquire", "lend", "lent", "lease", "rent", "outstanding", "in use"),
			shaped(-4, "they are replaced by larger ones", BytesOnly, Doubling),
		},
	},
	{
		ID: "segment-not-unlinked", Name: "shared memory segments that are never unlinked",
		What:       "A named shared memory segment stays in /dev/shm until it is unlinked, even if all processes have closed it or ended. Typically a producer creates one for each message, and the consumer only closes it.",
		Sign:       "One line adds files to /dev/shm. No process grows.",
		Fix:        "call unlink() once, after the last use of the segment; close() only unmaps it. Or create it with a SharedMemoryManager, which unlinks all of its segments",
		Before:     "shm = SharedMemory(create=True, size=n)\nqueue.put(shm.name)\n# in the consumer\nshm = SharedMemory(name)\nread(shm)\nshm.close()",
		After:      "shm = SharedMemory(name)\nread(shm)\nshm.close()\nshm.unlink()",
		References: []string{"shared-memory-dict#55", "pygeoprocessing#247"},
		clues:      []clue{need(segments(9))},
	},
	{
		ID: "reference-cycle", Name: "reference cycles that wait for the collector",
		What:       "Objects that hold tensors refer to each other: a module and its hook, an optimizer and its scheduler, a frame and its exception. Only the cycle collector frees them, and it runs late or is off.",
		Sign:       "A sawtooth: the collector frees blocks of several steps, or whole models, together.",
		Fix:        "break the cycle with a weak reference (weakref), or call gc.collect() at the end of a trial; if the collector is off, call gc.collect() every few steps",
		elsewhere:  [3]string{1: "break the cycle with a weak reference (weakref), or call gc.collect() now and then, most of all if the collector is off"},
		Before:     "self.module.register_forward_hook(self.hook)   # self holds module, module holds self",
		After:      "ref = weakref.ref(self)\nself.module.register_forward_hook(lambda *a: ref().hook(*a))",
		References: []string{"pytorch#84413", "pytorch#85410", "pytorch#25605", "torchforge#209"},
		when:       either,
		objects:    true,
		clues: []clue{
			notGo(),
			uncollected(Sure),
			bySettled(named(4, "gc", "garbage", "collect", "collector", "cycle", "weakref")),
		},
	},
}

// shared are causes in training on several devices.
var shared = []Cause{
	{
		ID: "collective-buffers-kept", Name: "buffers gathered from other ranks are retained",
		What:       "Each rank retains the buffers that a collective filled: gathered targets, logits of all ranks, reduced gradients.",
		Sign:       "Blocks of the local size times the number of ranks, allocated in a collective, on every rank.",
		Fix:        "release the gathered tensor after use, or reuse one buffer for gathering",
		Before:     "self.targets.append(all_gather(targets))",
		After:      "update(metric, all_gather(targets))   # and nothing is kept",
		Workloads:  []string{"L22"},
		References: []string{"pytorch#5811"},
		clues: []clue{
			owned(6, snapshot.OwnedByComm, "it is a collective's buffer, and nothing else holds it"),
			named(4, "all gather", "gathered", "all reduce", "reduce scatter", "all to all", "collective", "nccl", "process group", "c10d"),
			partly(1, snapshot.OwnedByComm, "a collective holds them"),
			named(-5, "unshard", "fsdp", "deepspeed", "zero3"),
		},
	},
	{
		ID: "unsharded-kept", Name: "gathered parameters or gradients are not sharded again",
		What:       "Fully sharded training gathers a layer's parameters for forward and backward, and frees them afterwards. If the program reads parameters at another time, or accumulates unsharded gradients, the full tensors stay.",
		Sign:       "A few huge blocks of the unsharded size (the shard times the number of ranks), from all_gather or a reduction, are live at the end of a step. Gradient accumulation without sync intends that.",
		Fix:        "use parameters only inside the wrapped forward or summon_full_params; reshard after forward (reshard_after_forward=True, ZeRO stage 3 release)",
		Before:     "with FSDP.summon_full_params(model): keep = list(model.parameters())",
		After:      "with FSDP.summon_full_params(model): norm = total_norm(model).item()",
		References: []string{"pytorch#149100", "pytorch#83076", "pytorch#139234", "DeepSpeed#3025"},
		clues: []clue{
			need(named(5, "unshard", "unsharded", "fsdp", "fully shard", "flat param", "deepspeed", "zero3", "partition parameters", "summon full params")),
			named(2, "all gather", "gather", "reduce scatter", "foreach reduce", "fetch"),
			owned(1, snapshot.OwnedByComm, "it is a collective's buffer"),
		},
	},
}

// Remedies for memory that only the process shows.
const (
	nativeTools       = "To find C and C++ allocations, use heaptrack, memray --native or jemalloc; memdiag reads their files"
	compareExtensions = "update the extension that the line calls, or compare two versions of it. " + nativeTools
	runLonger         = "run longer, or with memdiag record --python-heap on, until a line shows. " + nativeTools
	boundHistory      = ". On CUDA set a bound: _record_memory_history(max_entries=…)"
)

// allocator are causes within the allocator, or outside of what it sees. Most are no leak.
var allocator = []Cause{
	{
		ID: "pending-free", Name: "freed blocks wait for another stream",
		What:       "The program freed the blocks, but another stream (record_stream, a collective) may still use them. Many such blocks raise the peak.",
		Sign:       "Active memory is well above allocated memory. The difference is in blocks of state active_pending_free.",
		Fix:        "synchronise the side stream, or hold the tensor until that stream's work is done instead of calling record_stream; with NCCL, TORCH_NCCL_AVOID_RECORD_STREAMS=1",
		Before:     "tensor.record_stream(side)\ndel tensor",
		After:      "work.wait()\ndel tensor",
		References: []string{"pytorch#147168", "pytorch#124260", "torchtitan#735"},
		when:       metered,
		clues:      []clue{meter(PendingFree, "active memory grows, allocated memory does not")},
	},
	{
		ID: "private-pool", Name: "private pools of CUDA graphs",
		What:       "A captured graph has its own memory pool, which stays at its peak size for the graph's lifetime. Each newly captured shape adds a pool. A failed capture may leave one.",
		Sign:       "Reserved memory grows in segments of private pools. Little or nothing is live in them.",
		Fix:        "capture for a few padded shapes only, share one pool (pool=graph.pool()), and drop graphs that are not used any more",
		Before:     "graphs[x.shape] = capture(model, x)",
		After:      "graphs[bucket(x.shape)] = capture(model, pad(x), pool=shared)",
		References: []string{"pytorch#128424", "pytorch#116096", "pytorch#155398"},
		when:       metered,
		clues:      []clue{meter(PrivatePool, "reserved memory grows in private pools")},
	},
	{
		ID: "cache-growth", Name: "the allocator's cache has grown",
		What:       "Reserved memory grew and allocated memory did not: the allocator holds the memory of an earlier peak for reuse. This is no leak, but other processes on the device cannot use it.",
		Sign:       "Reserved memory is above allocated memory. The difference is in large free blocks or empty segments.",
		Fix:        "none needed; one torch.cuda.empty_cache() after the peak returns it to the device",
		Before:     "for batch in loader:\n    step(batch)\n    torch.cuda.empty_cache()   # slow, and of no use",
		After:      "warm_up_with_largest_batch()\ntorch.cuda.empty_cache()\nfor batch in loader:\n    step(batch)",
		References: []string{"pytorch#46753", "pytorch#173049"},
		when:       metered,
		clues:      []clue{meter(CacheGrowth, "reserved memory grows, allocated memory does not")},
	},
	{
		ID: "fragmentation", Name: "fragmentation",
		What:       "Shapes vary, and live blocks split free memory into pieces that are too small for the next request. One small live block can hold a whole segment.",
		Sign:       "Reserved memory grows while allocated memory is flat. The largest free block is far smaller than all free memory. memdiag show lists the blocks that pin segments.",
		Fix:        "allocate long-lived tensors first, pad shapes to a few sizes, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
		Before:     "for x in batches_of_any_length: step(x)",
		After:      "for x in batches_of_any_length: step(pad_to_multiple(x, 64))",
		Workloads:  []string{"D29"},
		References: []string{"pytorch#35901", "pytorch#31252", "pytorch#29554", "torchtune#2830"},
		when:       metered,
		clues:      []clue{meter(Fragmentation, "reserved memory grows in pieces that are too small")},
	},
	{
		ID: "unsplit-waste", Name: "large blocks that were not split",
		What:       "If less than 1 MiB of a large block would be left over, the allocator does not split it. So allocated memory is more than the program requested.",
		Sign:       "Allocated memory is well above requested memory. 130 to 450 MiB in total are usual in large training runs.",
		Fix:        "usually none needed; if there are many blocks just over 1 MiB, allocate them as one",
		Before:     "rows = [torch.empty(300_000, device='cuda') for _ in range(500)]",
		After:      "rows = torch.empty(500, 300_000, device='cuda').unbind()",
		References: []string{"pytorch#31252"},
		when:       metered,
		clues:      []clue{meter(UnsplitWaste, "allocated memory grows faster than what was requested")},
	},
	{
		ID: "before-recording", Name: "allocated outside the recording",
		What:       "Blocks without a stack are older than the recording, or come from code that it cannot see: C++, and on the CPU also threads that began before PyTorch was imported, or that ran for long. The number of older blocks can only fall.",
		Sign:       "Call sites named <no stack recorded>, by size, pool and stream.",
		Fix:        "on CUDA call torch.cuda.memory._record_memory_history() before the model is built, with stacks=\"all\" for C++; on the CPU run the code that grows in the main thread",
		elsewhere:  [3]string{1: "record from the program's start, and run the code that grows in the main thread"},
		Before:     "model = build().cuda()\ntorch.cuda.memory._record_memory_history()",
		After:      "torch.cuda.memory._record_memory_history(stacks=\"all\")\nmodel = build().cuda()",
		References: []string{"pytorch#175707"},
		objects:    true,
		plain:      true,
		clues:      []clue{need(bare(3))},
	},
	{
		ID: "pool-kept-live", Name: "live blocks in a private pool",
		What:       "Outputs of a captured graph are in its pool. Allocations under use_mem_pool are in a pool of their own. If the program holds them until the next capture, replay or step, the pool must grow.",
		Sign:       "One stack has live blocks in segments of a private pool, and each capture or step adds more.",
		Fix:        "release what holds them; copy outputs of a graph before you store them, and reuse its input buffers",
		Before:     "kept.append(graph_output)",
		After:      "kept.append(graph_output.clone())",
		References: []string{"pytorch#128424"},
		clues:      []clue{need(private(4)), function(2, "cuda graph", "capture", "replay", "make graphed callables")},
	},
	{
		ID: "host-index", Name: "index entries stay on the host after the device memory is freed",
		What:       "Device memory is freed, but its entry in a map, an index or a list of nodes on the host stays.",
		Sign:       "Each step adds a small block to the host's heap. Device memory is flat.",
		Fix:        "delete the entry from every index when the memory is freed; or use weak references",
		Before:     "delete(nodes, id)   // and the index by parent still has it",
		After:      "delete(nodes, id)\ndelete(children, id)",
		Workloads:  []string{"L08"},
		References: []string{"burn#4345", "transformers#6999"},
		objects:    true,
		clues: []clue{
			need(onHost(7)),
			partly(2, snapshot.OwnedByTape, "the autograd graph holds them"),
			held(1, "map"),
			function(1, "index", "registry", "node", "map", "entry", "track"),
		},
	},
	{
		ID: "host-only", Name: "memory that no recorded object holds",
		What:       "The process grows, and no variable of the program holds the growth. Examples: native code that leaks, such as an extension with wrong reference counts; a graph whose tensors are freed but whose nodes stay; a cache of plans for each shape; workers that copy lists; a profiler that was left on; an unbounded allocation history.",
		Sign:       "Resident memory rises, and the allocator's figures do not. Or a line that calls an extension grows on Python's heap, and no variable of the program leads to its objects.",
		Fix:        compareExtensions + boundHistory,
		Unplaced:   runLonger + boundHistory,
		elsewhere:  [3]string{1: compareExtensions, 2: runLonger},
		Before:     "total_loss += loss   # after backward: nothing on the GPU, nodes on the host",
		After:      "total_loss += loss.item()",
		References: []string{"pytorch#98688", "pytorch#22597", "pytorch#20433", "transformers#6999"},
		when:       anything,
		objects:    true,
		plain:      true,
		last:       true,
		clues: []clue{need(anyOf(
			meter(Host, "the process's own memory grows, and no recorded stack explains it"),
			unnamed(Least, "object", "no variable of the program was found to lead to them"),
			beside(Least, "no variable of the program was found to lead to them, and the process's own memory grows in proportion"),
		))},
	},
}
