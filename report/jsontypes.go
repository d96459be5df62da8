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
	// Least is the smallest leak that the run could have shown: one block every so many steps, or LeastTime seconds in a run without
	// steps; 0 for none.
	Least     int64   `json:"smallest_leak_every_steps"`
	LeastTime float64 `json:"smallest_leak_every_seconds,omitempty"`
	// LeastSample is the sample size that takes the place of a block if allocations were sampled.
	LeastSample int64         `json:"smallest_leak_sample_bytes,omitempty"`
	Reserves    []reserveJSON `json:"reserves"`
	Children    []childJSON   `json:"children,omitempty"`
	// OutOfMemory is the last request for memory that failed; absent if none did.
	OutOfMemory *refusedJSON `json:"out_of_memory,omitempty"`
	PeakByInput []demandJSON `json:"peak_by_input,omitempty"`
	AfterWarmUp []bandsJSON  `json:"after_warm_up,omitempty"` // for devices with enough points
	NotSeen     []string     `json:"not_seen"`                // what no verdict covers
	Notes       []string     `json:"notes"`
	Known       []string     `json:"known_leaks,omitempty"` // of libraries
}

// childJSON is another process of the command with leaks.
type childJSON struct {
	childOfJSON
	Findings []findingJSON `json:"findings"`
}

// childOfJSON is a process that leaks, as an example of others of its kind.
type childOfJSON struct {
	Role    string `json:"role"`
	PID     int    `json:"pid,omitempty"`
	Machine string `json:"machine,omitempty"`
	Alike   int    `json:"alike"`
	Of      int    `json:"of"`
}

// reserveJSON is a device with a meter that grew while its live memory did not.
type reserveJSON struct {
	Device string `json:"device"`
	Meter  string `json:"meter"` // as cause.Meter
	Growth int64  `json:"meter_growth_bytes"`
	// Rate is the rate of growth, for the process itself only.
	Rate    *reserveRateJSON `json:"rate,omitempty"`
	Live    int64            `json:"live_growth_bytes"`
	Free    int64            `json:"free_bytes"`
	Largest int64            `json:"largest_free_bytes"`
	Trim    int64            `json:"trim_bytes"`
	Cause   string           `json:"cause,omitempty"`
	// Headline is the line at which the process's own memory grew, if known.
	Headline *frameJSON `json:"headline,omitempty"`
	// Holder is the likely holder of what has grown.
	Holder *holderJSON `json:"holder,omitempty"`
	// Processes are the processes that grew, if they are not the recorded one.
	Processes *processesJSON `json:"processes,omitempty"`
}

// processesJSON are unrecorded processes of the command.
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

// markJSON leaves out unknown values.
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
	Verdict string    `json:"verdict,omitempty"` // the verdict of its finding
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
	Estimate bool          `json:"estimated,omitempty"` // only some steps or allocations were recorded, and stand for the others
	Rate     *rateJSON     `json:"rate"`
	Owners   []string      `json:"owners"`
	Holder   *holderJSON   `json:"holder,omitempty"`
	Cause    *causeJSON    `json:"cause,omitempty"`
	Pace     *paceJSON     `json:"pace,omitempty"`
	Shape    string        `json:"shape,omitempty"`
	More     int64         `json:"more_steps,omitempty"` // steps that may decide it
	MoreTime int64         `json:"more_seconds,omitempty"`
	Against  *againstJSON  `json:"against,omitempty"`
	RunsOut  *forecastJSON `json:"runs_out,omitempty"`
	// Stacks are all stacks that leak together, if there are several. label, frames and stack_hash are those of the first; all other
	// figures are for all of them.
	Stacks []memberJSON `json:"stacks,omitempty"`
	// MoreSnapshots is how many more snapshots, as far apart as the last two, may decide it; 0 if counters decide.
	MoreSnapshots int `json:"more_snapshots,omitempty"`
	// Nodes is the part of the process's growth that is ascribed to nodes of autograd's graph, or to the items of a container. It is
	// included in the rate but in no tally.
	Nodes int64 `json:"graph_bytes,omitempty"`
	// Beside is the growth of objects other than tensors that the holder retains. It is included in the rate but in no tally.
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
	Match  string    `json:"match"` // "" if the good run has no such stack
	Good   rateJSON  `json:"good_rate"`
	Excess slopeJSON `json:"excess_bytes"`
}

// ranksJSON is the result for all ranks together; the other keys are for one rank.
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
	// Counted is the step at which the items were counted, if before that of the snapshot.
	Counted int64 `json:"items_at_step,omitempty"`
	Bound   int   `json:"bound,omitempty"` // the most items that it may have
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
	// nil if the run is not by steps
	Step  *int64 `json:"step,omitempty"`
	Low   *int64 `json:"low,omitempty"`
	High  *int64 `json:"high,omitempty"`
	Limit int64  `json:"limit_bytes"`
	// OfProcess: the limit is on all memory of the process.
	OfProcess bool `json:"of_process,omitempty"`
	// Beyond: it is more than 100 times the run's length away, and no step or time is given. Open: high is cut at that distance.
	Beyond bool `json:"beyond,omitempty"`
	Open   bool `json:"open,omitempty"`
	// After is in seconds after the last snapshot; nil if the run has no times.
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
