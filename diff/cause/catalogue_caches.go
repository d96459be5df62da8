package cause

import "github.com/memdiag/memdiag/snapshot"

// Words of lower precision.
var castWords = []string{"cast", "autocast", "amp", "half", "bfloat16", "bf16", "fp16", "float16", "mixed precision", "lower precision"}

// Words for objects that pass data from one part of a program to another.
var queueWords = []string{"queue", "prefetch", "prefetcher", "prefetched", "backlog", "producer", "enqueue", "dequeue", "inbox", "ahead", "channel"}

// caches are causes in which memory that is retained on purpose has no bound.
var caches = []Cause{
	{
		ID: "cache-without-bound", Name: "a cache without a bound",
		What:       "Results are stored under a key, and new keys keep coming: the batch's number, each new length, each new instance of a model. A replay buffer without a capacity does the same.",
		Sign:       "A map grows with the number of different keys and never evicts. With a finite set of keys it levels off and is no leak.",
		Fix:        "set a capacity and evict the oldest entry; round lengths up to a few buckets; do not use an object as a key: the cache then holds it",
		elsewhere:  [3]string{1: "set a capacity and evict the oldest entry; do not use an object as a key: the cache then holds it"},
		Before:     "@functools.cache\ndef positions(length, device): ...",
		After:      "@functools.lru_cache(maxsize=16)\ndef positions(length, device): ...",
		Workloads:  []string{"L18", "L19", "L20", "L38"},
		References: []string{"jax#2072", "torchtune#904", "mistral-inference#20"},
		objects:    true,
		plain:      true,
		clues: []clue{
			held(3, "map"),
			named(3, "cache", "cached", "memo", "memoize", "lru", "lru cache", "plan", "replay", "experience", "lookup", "compile", "compiled", "intern", "pool", "table"),
			modules(2),
			owned(2, snapshot.OwnedByCache, "a cache of the framework holds them"),
			held(1, "list"),
			named(-4, "optimizer state", "optim state", "opt state"),
			shaped(-4, "they are replaced by larger ones", BytesOnly, Doubling),
			upTo(-2, 8, "each is a single number of %s"),
			follows(-2, "it grows when checkpoints are saved", Checkpoints),
		},
	},
	{
		ID: "compiled-anew", Name: "functions are compiled again and again",
		What:       "A function is compiled for the shapes, types and constants of its arguments. Each step has new ones, and the cache holds each program. Examples: a batch padded to its own longest text, the step number as a static argument, jit of a function defined in a loop.",
		Sign:       "One line adds compiled programs, each with code and constants. Steps stay as slow as the first one. With a finite set of shapes it levels off.",
		Fix:        "pad to a few lengths; pass changing values as arrays, not as static arguments; call jit once, outside the loop; JAX_LOG_COMPILES=1 logs each compilation",
		Before:     "score(x[:length])   # a program for each length",
		After:      "score(pad(x, multiple_of=128))",
		References: []string{"jax#2072"},
		clues:      []clue{need(programs(9))},
	},
	{
		ID: "cache-regrown", Name: "a buffer is replaced by a larger one again and again",
		What:       "A full buffer or cache is replaced by a larger one and never shrinks: concatenation in a loop, an array that doubles.",
		Sign:       "The number of blocks is constant, and their size grows. During each replacement the old and the new block are both live.",
		Fix:        "limit its length and overwrite the oldest part, or truncate it at the end of an epoch or a sequence",
		Before:     "cache = torch.cat([cache, new])",
		After:      "cache = torch.cat([cache, new])[-limit:]",
		Workloads:  []string{"L31", "L32"},
		References: []string{"MemOS#2301", "transformers#25313"},
		objects:    true,
		clues: []clue{
			need(shaped(6, "the number of blocks is constant, and their size grows", BytesOnly, Doubling)),
			named(2, "cache", "buffer", "key value", "kv", "concat", "cat", "grow", "grown", "resize", "reserve"),
			shaped(1, "each is larger than the one before by the same factor", Doubling),
		},
	},
	{
		ID: "queue-without-bound", Name: "a queue without a bound",
		What:       "A producer is faster than its consumer, and nothing makes it wait: a loader that uploads ahead, a backlog of batches for another model.",
		Sign:       "Blocks of a batch's size, allocated by the code that copies data from the host. They grow by the difference between the two rates.",
		Fix:        "bound the queue (queue.Queue(maxsize=…), prefetch_factor), so that the producer waits",
		Before:     "queue = collections.deque()",
		After:      "queue = queue.Queue(maxsize=4)",
		Workloads:  []string{"L25"},
		References: []string{"cosmos-rl#716", "pytorch#97432"},
		objects:    true,
		clues: []clue{
			// Anything may hold what came out of a loader. The holder, or the order in which blocks leave it, shows
			// that it is a queue; otherwise, the function that fills it.
			need(anyOf(
				holderNamed(6, queueWords...),
				enqueued(4),
				drained(4, Yes, "the oldest are freed first, and newer ones accumulate"),
				whereNoHolder(usersFunction(4, queueWords...)),
			)),
			drained(-2, No, "the oldest are still live"),
			held(2, "deque"),
			operation(3, "they come from the host", "from floats", "from ints", "upload", "to device", "from numpy", "as tensor", "pin memory", "to", "collate"),
			held(1, "list"),
			owned(1, snapshot.OwnedByCache, "the framework counts them as cached"),
			named(-3, logWords...),
			upTo(-3, 8, "each is a single number of %s"),
		},
	},
	{
		ID: "threads-not-ended", Name: "threads are started and never end",
		What:       "Python holds each thread until its function returns, with the function's arguments, its locals and the thread's stack. Examples: a poller for each step that waits forever; a writer, loader or client with a thread of its own, created in each epoch and never closed.",
		Sign:       "threading._active becomes longer. The process grows by some KiB a thread, more than its objects take.",
		Fix:        "close what has a thread (SummaryWriter.close(), a pool's shutdown()), let each thread's function return, and join it; or start one thread that serves all",
		Before:     "for epoch in range(epochs):\n    writer = SummaryWriter(folder)\n    train(writer)",
		After:      "for epoch in range(epochs):\n    with SummaryWriter(folder) as writer:\n        train(writer)",
		References: []string{"tensorboardX#108", "tensorflow#8981", "mem0#4423"},
		objects:    true,
		plain:      true,
		clues:      []clue{need(heldIn(9, "threading._active"))},
	},
	{
		ID: "cycle-keeps", Name: "itertools.cycle retains every item",
		What:       "itertools.cycle stores each item of the first round, and returns the stored items in later rounds. With a loader it stores all batches of an epoch; with an endless loader, all batches ever. itertools.tee stores each item until all of its iterators have read it.",
		Sign:       "One more batch at each step of the first round. Later rounds repeat the batches in the same order.",
		Fix:        "restart the loader when it ends, with a generator: `while True: yield from loader`",
		elsewhere:  [3]string{1: "begin again when the items end, with a generator: `while True: yield from items`"},
		Before:     "batches = itertools.cycle(loader)",
		After:      "def endless(loader):\n    while True:\n        yield from loader\n\nbatches = endless(loader)",
		References: []string{"pytorch#23900"},
		objects:    true,
		plain:      true,
		clues:      []clue{need(heldIn(9, " of itertools.cycle"))},
	},
	{
		ID: "cast-context-open", Name: "an autocast context is entered and never left",
		What:       "Autocast holds a copy of each weight in lower precision until the program leaves the outermost context. If it never does, the copies stay.",
		Sign:       "Blocks of half the weights' sizes, allocated by the cast. Each context adds one set.",
		Fix:        "enter the context around the forward pass only, and leave it each time (with …, or defer Close)",
		Before:     "torch.autocast('cuda').__enter__()\nloss = model(batch)",
		After:      "with torch.autocast('cuda'):\n    loss = model(batch)",
		Workloads:  []string{"L28"},
		References: []string{"pytorch#48049"},
		clues: []clue{
			need(named(5, castWords...)),
			owned(3, snapshot.OwnedByCache, "a cache of the framework holds them"),
			held(1, "map"),
		},
	},
}
