package cause

import "github.com/memdiag/memdiag/snapshot"

// Words of lower precision.
var castWords = []string{"cast", "autocast", "amp", "half", "bfloat16", "bf16", "fp16", "float16", "mixed precision", "lower precision"}

// Words of what hands on from one part of a program to another.
var queueWords = []string{"queue", "prefetch", "prefetcher", "prefetched", "backlog", "producer", "enqueue", "dequeue", "inbox", "ahead", "channel"}

// caches are causes by which what is kept on purpose has no bound.
var caches = []Cause{
	{
		ID: "cache-without-bound", Name: "a cache without a bound",
		What: "Results are kept by a key, and keys go on being new: the batch's number, each new length, each new instance of a model. " +
			"A replay buffer without a capacity is one too.",
		Sign:       "A map that grows with the number of different keys, and never evicts. Over a finite set of keys it levels off, and is no leak.",
		Fix:        "give it a capacity and drop the oldest; round lengths up to a few buckets; do not key by an object that lives as long as the key",
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
			follows(-2, "it grows where checkpoints are saved", Checkpoints),
		},
	},
	{
		ID: "compiled-anew", Name: "programs are compiled again and again",
		What: "A function that is compiled for the shapes, types and constants that it meets meets new ones in each step, and each program stays in its cache: " +
			"a batch that is as long as its longest text, a step's number as a static argument, jit of a function that is made anew in a loop.",
		Sign:       "Ever more compiled programs from one line, each with code and constants, and steps that take as long as the first. Over a finite set of shapes it levels off.",
		Fix:        "pad to a few lengths; pass what changes as an array, and not as a static argument; jit once, outside of the loop; see what is compiled by JAX_LOG_COMPILES=1",
		Before:     "score(x[:length])   # a program for each length",
		After:      "score(pad(x, multiple_of=128))",
		References: []string{"jax#2072"},
		clues:      []clue{need(programs(9))},
	},
	{
		ID: "cache-regrown", Name: "one block is replaced by a larger one again and again",
		What:       "A buffer or a cache is made anew, larger, when it is full, and never made smaller: concatenation in a loop, an array that doubles.",
		Sign:       "The number of blocks stays, their size grows. At each growth both the old and the new one are live.",
		Fix:        "cap its length and write over the oldest part, or truncate it where an epoch or a sequence ends",
		Before:     "cache = torch.cat([cache, new])",
		After:      "cache = torch.cat([cache, new])[-limit:]",
		Workloads:  []string{"L31", "L32"},
		References: []string{"MemOS#2301", "transformers#25313"},
		objects:    true,
		clues: []clue{
			need(shaped(6, "the number of blocks stays, and their size grows", BytesOnly, Doubling)),
			named(2, "cache", "buffer", "key value", "kv", "concat", "cat", "grow", "grown", "resize", "reserve"),
			shaped(1, "each is larger than the one before by the same factor", Doubling),
		},
	},
	{
		ID: "queue-without-bound", Name: "a queue without a bound",
		What:       "A producer is faster than its consumer and nothing holds it up: a loader that uploads ahead, a backlog of batches for another model.",
		Sign:       "Blocks of a batch's size, born where data come from the host, at the rate by which one side outruns the other.",
		Fix:        "bound the queue (queue.Queue(maxsize=…), prefetch_factor), so that the producer waits",
		Before:     "queue = collections.deque()",
		After:      "queue = queue.Queue(maxsize=4)",
		Workloads:  []string{"L25"},
		References: []string{"cosmos-rl#716", "pytorch#97432"},
		objects:    true,
		clues: []clue{
			// What came out of a loader may be held by anything: what holds the blocks says that it is a queue, or that
			// they leave it in their order; else who puts them there.
			need(anyOf(
				holderNamed(6, queueWords...),
				drained(4, Yes, "the oldest of them are gone, and younger ones gather"),
				whereNoHolder(usersFunction(4, queueWords...)),
			)),
			drained(-2, No, "the oldest of them are there"),
			held(2, "deque"),
			operation(3, "they come from the host", "from floats", "from ints", "upload", "to device", "from numpy", "as tensor", "pin memory", "to", "collate"),
			held(1, "list"),
			owned(1, snapshot.OwnedByCache, "they wait, for the framework's count, in a cache"),
			named(-3, logWords...),
			upTo(-3, 8, "each is a single number of %s"),
		},
	},
	{
		ID: "cycle-keeps", Name: "itertools.cycle keeps all that it has seen",
		What: "itertools.cycle keeps each item of the first round, to hand it out again in the next ones, and asks the loader no more. " +
			"Over a loader these are all batches of an epoch, and of an endless one all there ever are. itertools.tee keeps what one of its iterators has seen and another has not.",
		Sign:       "A batch more at each step, as long as the first round lasts. The second round and all after it have the first one's batches, in its order.",
		Fix:        "begin the loader anew when it ends: a generator that says `while True: yield from loader`",
		Before:     "batches = itertools.cycle(loader)",
		After:      "def endless(loader):\n    while True:\n        yield from loader\n\nbatches = endless(loader)",
		References: []string{"pytorch#23900"},
		objects:    true,
		plain:      true,
		clues:      []clue{need(heldIn(9, " of itertools.cycle"))},
	},
	{
		ID: "cast-context-open", Name: "a context of lower precision is opened and never left",
		What:       "Autocast keeps a lowered copy of each weight until the outermost context is left. A context that stays open, or one opened in each step, keeps them.",
		Sign:       "Blocks of half the weights' sizes, born in the cast, one set a context.",
		Fix:        "open the context around the forward pass only, and leave it each time (with …, or defer Close)",
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
