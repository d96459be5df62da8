package report

// schemaVersion increases when a key of the JSON changes its meaning or is removed; new keys do not change it.
const schemaVersion = 1

type resultJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Summary       string        `json:"summary"`
	Rule          string        `json:"rule"`
	First         markJSON      `json:"first"`
	Last          markJSON      `json:"last"`
	Intermediate  int           `json:"intermediate_snapshots"`
	Growth        tallyJSON     `json:"growth"`
	Totals        []accountJSON `json:"totals"`
	Devices       []changeJSON  `json:"devices"`
	Findings      []findingJSON `json:"findings"`
	Rows          []rowJSON     `json:"rows"`
	Ranks         *ranksJSON    `json:"ranks,omitempty"`
	// Least is the smallest leak that the run could have shown, one block in so many
	// steps, or of a run by the clock LeastTime in so many seconds; 0 for none.
	Least     int64   `json:"smallest_leak_every_steps"`
	LeastTime float64 `json:"smallest_leak_every_seconds,omitempty"`
	// LeastSample is what comes then in place of a block, where allocations were sampled.
	LeastSample int64         `json:"smallest_leak_sample_bytes,omitempty"`
	Reserves    []reserveJSON `json:"reserves"`
	Children    []childJSON   `json:"children,omitempty"`
	// OutOfMemory is the last request for memory that failed; absent where none did.
	OutOfMemory *refusedJSON `json:"out_of_memory,omitempty"`
	PeakByInput []demandJSON `json:"peak_by_input,omitempty"`
	AfterWarmUp []bandsJSON  `json:"after_warm_up,omitempty"` // of devices with points enough
	NotSeen     []string     `json:"not_seen"`                // what no verdict speaks of
	Notes       []string     `json:"notes"`
	Known       []string     `json:"known_leaks,omitempty"` // of libraries
}

// childJSON is another process of the command that leaks.
type childJSON struct {
	childOfJSON
	Findings []findingJSON `json:"findings"`
}

// childOfJSON is the process that stands for those of its kind that leak.
type childOfJSON struct {
	Role    string `json:"role"`
	PID     int    `json:"pid,omitempty"`
	Machine string `json:"machine,omitempty"`
	Alike   int    `json:"alike"`
	Of      int    `json:"of"`
}

// reserveJSON is a device of which a meter grew while its live memory did not.
type reserveJSON struct {
	Device string `json:"device"`
	Meter  string `json:"meter"` // as cause.Meter
	Growth int64  `json:"meter_growth_bytes"`
	// Rate is that of the growth; of the process itself alone.
	Rate    *reserveRateJSON `json:"rate,omitempty"`
	Live    int64            `json:"live_growth_bytes"`
	Free    int64            `json:"free_bytes"`
	Largest int64            `json:"largest_free_bytes"`
	Trim    int64            `json:"trim_bytes"`
	Cause   string           `json:"cause,omitempty"`
	// Headline is the line at which the process's own memory grew, if it is known.
	Headline *frameJSON `json:"headline,omitempty"`
	// Holder keeps what is likely to have grown.
	Holder *holderJSON `json:"holder,omitempty"`
	// Processes are those that grew, where they are others than the recorded one.
	Processes *processesJSON `json:"processes,omitempty"`
}

// processesJSON are processes of the command in which nothing was recorded.
type processesJSON struct {
	Role     string `json:"role"`
	PID      int    `json:"pid,omitempty"`
	Alike    int    `json:"alike"`
	Of       int    `json:"of"`
	Shared   bool   `json:"shared,omitempty"`
	Segments int64  `json:"segments,omitempty"`
}

type reserveRateJSON struct {
	Unit  string    `json:"unit"`
	Bytes slopeJSON `json:"bytes"`
}

// markJSON leaves out what is unknown.
type markJSON struct {
	Step     *int64 `json:"step,omitempty"`
	Epoch    *int64 `json:"epoch,omitempty"`
	Phase    string `json:"phase,omitempty"`
	Rank     *int   `json:"rank,omitempty"`
	Producer string `json:"producer"`
}

type tallyJSON struct {
	Blocks    *int64 `json:"blocks,omitempty"`
	Bytes     int64  `json:"bytes"`
	Requested int64  `json:"requested_bytes"`
}

type accountJSON struct {
	Name  string `json:"name"`
	Sites int    `json:"sites"`
	tallyJSON
}

type changeJSON struct {
	Device string      `json:"device"`
	Name   string      `json:"name,omitempty"`
	Limit  *int64      `json:"limit_bytes,omitempty"`
	First  *metersJSON `json:"first,omitempty"`
	Last   metersJSON  `json:"last"`
}

type metersJSON struct {
	Requested int64  `json:"requested_bytes"`
	Allocated int64  `json:"allocated_bytes"`
	Active    *int64 `json:"active_bytes,omitempty"`
	Reserved  *int64 `json:"reserved_bytes,omitempty"`
	Driver    *int64 `json:"driver_bytes,omitempty"`
}

type frameJSON struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     *int   `json:"line,omitempty"`
}

type rowJSON struct {
	Hash    string    `json:"stack_hash"`
	Device  string    `json:"device"`
	Where   string    `json:"where"`
	Verdict string    `json:"verdict,omitempty"` // of the finding that it is part of
	Before  tallyJSON `json:"before"`
	After   tallyJSON `json:"after"`
	Growth  tallyJSON `json:"growth"`
	Born    tallyJSON `json:"born"`
	Died    tallyJSON `json:"died"`
}

type findingJSON struct {
	Verdict  string        `json:"verdict"`
	Evidence string        `json:"evidence"`
	Reasons  []string      `json:"reasons"`
	Headline *frameJSON    `json:"headline"`
	Frames   []frameJSON   `json:"frames"`
	Label    string        `json:"label,omitempty"`
	Hash     string        `json:"stack_hash"`
	Device   string        `json:"device"`
	Live     tallyJSON     `json:"live"`
	Growth   tallyJSON     `json:"growth"`
	Born     tallyJSON     `json:"born"`
	Died     tallyJSON     `json:"died"`
	Estimate bool          `json:"estimated,omitempty"` // some steps or allocations were recorded, which stand for the others
	Rate     *rateJSON     `json:"rate"`
	Owners   []string      `json:"owners"`
	Holder   *holderJSON   `json:"holder,omitempty"`
	Cause    *causeJSON    `json:"cause,omitempty"`
	Pace     *paceJSON     `json:"pace,omitempty"`
	Shape    string        `json:"shape,omitempty"`
	More     int64         `json:"more_steps,omitempty"` // that may decide it
	MoreTime int64         `json:"more_seconds,omitempty"`
	Against  *againstJSON  `json:"against,omitempty"`
	RunsOut  *forecastJSON `json:"runs_out,omitempty"`
	// Stacks are all that leak together, where there are several; label, frames and
	// stack_hash are of the first, all other figures of them together.
	Stacks []memberJSON `json:"stacks,omitempty"`
	// MoreSnapshots may decide it, as far apart as the last two; 0 where counters do.
	MoreSnapshots int `json:"more_snapshots,omitempty"`
	// Nodes is the growth of the process that is taken to be nodes of autograd's graph, or the items of a container: a part of
	// the rate, and of no tally.
	Nodes int64 `json:"graph_bytes,omitempty"`
	// Beside is by how much objects grew that the holder keeps beside tensors: a part of the rate, and of no tally.
	Beside int64 `json:"beside_bytes,omitempty"`
}

type memberJSON struct {
	Hash   string      `json:"stack_hash"`
	Frames []frameJSON `json:"frames"`
	Growth tallyJSON   `json:"growth"`
}

type rateJSON struct {
	Unit   string     `json:"unit"`
	Blocks *slopeJSON `json:"blocks,omitempty"`
	Bytes  slopeJSON  `json:"bytes"`
}

// againstJSON compares with a run that is known to be good.
type againstJSON struct {
	Match  string    `json:"match"` // "" where it has no such stack
	Good   rateJSON  `json:"good_rate"`
	Excess slopeJSON `json:"excess_bytes"`
}

// ranksJSON is what all ranks of a run show together; the rest is of one of them.
type ranksJSON struct {
	Judged []int          `json:"judged"`
	Leaks  []rankLeakJSON `json:"leaks"`
	Notes  []string       `json:"notes"`
}

type rankLeakJSON struct {
	On    []int    `json:"on"`
	Most  int      `json:"most_on"`
	Where string   `json:"where"`
	Rate  rateJSON `json:"rate"`
}

type slopeJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	N     int     `json:"n"`
}

type holderJSON struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Items int    `json:"items,omitempty"`
	// Counted is the step at which the items were, before that of the snapshot.
	Counted int64 `json:"items_at_step,omitempty"`
	Bound   int   `json:"bound,omitempty"` // how many items it may have
}

type causeJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Fix  string `json:"fix"`
	Why  string `json:"why"`
	// Others are the ids of causes that fit less well, the best first.
	Others []string `json:"others"`
}

type forecastJSON struct {
	// Steps; nil by the clock.
	Step  *int64 `json:"step,omitempty"`
	Low   *int64 `json:"low,omitempty"`
	High  *int64 `json:"high,omitempty"`
	Limit int64  `json:"limit_bytes"`
	// OfProcess: the limit is of all that the process may take.
	OfProcess bool `json:"of_process,omitempty"`
	// Beyond: it is farther away than 100 times the length of the run, and no step or time is given.
	// Open: high is cut to that.
	Beyond bool `json:"beyond,omitempty"`
	Open   bool `json:"open,omitempty"`
	// After are seconds after the last snapshot; nil where the run has no times.
	After *afterJSON `json:"after_seconds,omitempty"`
}

type afterJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

type paceJSON struct {
	Event  string  `json:"event"`
	Every  int64   `json:"every_steps"`
	Events int64   `json:"events"`
	Blocks float64 `json:"blocks"`
	Bytes  int64   `json:"bytes"`
}
