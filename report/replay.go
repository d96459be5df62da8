package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/memdiag/memdiag/replay"
	"github.com/memdiag/memdiag/snapshot"
)

// Replay is the behavior of one device's allocator under several settings.
type Replay struct {
	Snapshot *snapshot.Snapshot
	Player   *replay.Player
	Known    bool // whether the snapshot has its settings
	Recorded replay.Settings
	Fidelity replay.Fidelity
	Results  []replay.Result // in any order
}

// best are the results, those that need least memory first.
func (r *Replay) best() []replay.Result {
	out := slices.Clone(r.Results)
	slices.SortStableFunc(out, replay.Compare)
	return out
}

// settingsName is the name of a row of the table.
func settingsName(text string) string { return cmp.Or(brief(text), "PyTorch's defaults") }

// Text writes a replay for a terminal, best settings first.
func (r *Replay) Text(w io.Writer, o TextOptions) error {
	p := newPage(o)
	device := deviceName(r.Snapshot.Devices[r.Player.Device()])
	best := r.best()
	p.prose("", "  ", r.sentence(best))
	p.prose("", "  ", fmt.Sprintf("replayed: %s of %s; %s were live before, placed again under each setting", glue(count(int64(r.Player.Events()), "event")), device, glue(r.Player.Older().String())))
	if limit := r.Player.Limit; limit > 0 {
		text := "a request that does not fit empties the cache, and fails if that is not enough"
		if !slices.ContainsFunc(r.Results, func(b replay.Result) bool { return b.Retries > 0 }) {
			text = "no setting meets it"
		}
		p.prose("", "  ", fmt.Sprintf("limit: %s; %s", glue(limit.String()), text))
	}
	p.line("")
	rows := make([][]string, len(best))
	for i, b := range best {
		name := settingsName(b.Settings.Text)
		if b.Recorded {
			name += " (as recorded)"
		}
		rows[i] = []string{b.Reserved.String(), b.Live.String(), b.Needed.String(), b.Stranded.String(), grouped(b.Calls), grouped(b.Retries), grouped(b.Failed), name}
	}
	p.table([]column{{"reserved", true}, {"live then", true}, {"needed", true}, {"stranded", true}, {"calls", true}, {"retries", true}, {"failed", true}, {"settings", false}}, rows)
	for _, column := range []string{
		"reserved: peak reserved memory, and what was live then",
		"needed: the smallest limit without a failed request",
		"stranded: peak free memory in segments that still held live blocks; emptying the cache cannot release it",
		"calls: calls to the driver",
		"retries: how often the cache was emptied because memory ran out",
	} {
		p.prose("  ", "  ", column)
	}
	for _, b := range best {
		for _, bound := range b.Unmet {
			p.prose("  ", "  ", fmt.Sprintf("not met with %s: %s", settingsName(b.Settings.Text), bound))
		}
	}
	p.line("")
	p.fidelity(r)
	for _, trap := range r.traps() {
		p.prose("note: ", "      ", trap)
	}
	return p.writeTo(w)
}

// sentence is the result in one sentence.
func (r *Replay) sentence(best []replay.Result) string {
	now := best[slices.IndexFunc(best, func(b replay.Result) bool { return b.Recorded })]
	first := best[0]
	saved := now.Reserved - first.Reserved
	switch {
	case first.Recorded || saved <= 0 && first.Failed == now.Failed:
		return fmt.Sprintf("no setting reserves less than the recorded one: %s, for %s live", glue(now.Reserved.String()), glue(now.Live.String()))
	case first.Failed < now.Failed:
		return fmt.Sprintf("%s fails %s for lack of memory instead of %s", settingsName(first.Settings.Text), count(first.Failed, "request"), grouped(now.Failed))
	}
	return fmt.Sprintf("%s reserves %s instead of %s (%s less)", settingsName(first.Settings.Text), glue(first.Reserved.String()), glue(now.Reserved.String()), glue(saved.String()))
}

func (p *page) fidelity(r *Replay) {
	f := r.Fidelity
	text := fmt.Sprintf("check passed: the model reproduces all %s recorded segments, and %s of %s at their recorded address", grouped(int64(f.Segments)), grouped(f.Placed), count(f.Allocs, "allocation"))
	if !f.Exact() {
		text = fmt.Sprintf("check failed: the model reproduces %s of %s recorded segments, and has %s others (%s in place of %s); take the figures as estimates", grouped(int64(f.Same)), grouped(int64(f.Segments)), grouped(int64(f.Extra)), glue(f.Modelled.String()), glue(f.Reserved.String()))
	}
	p.prose("", "  ", text)
	if !r.Known {
		p.prose("  ", "    ", "the snapshot does not record its settings; these are assumed: "+settingsName(r.Recorded.Text))
	}
	for _, why := range f.Why {
		p.prose("  ", "    ", why)
	}
}

// traps are the known problems of all settings, each once.
func (r *Replay) traps() []string {
	out := []string{}
	for _, b := range r.Results {
		for _, trap := range b.Settings.Traps() {
			if !slices.Contains(out, trap) {
				out = append(out, trap)
			}
		}
	}
	return out
}

type replayJSON struct {
	SchemaVersion int             `json:"schema_version"`
	Device        string          `json:"device"`
	Events        int             `json:"events"`
	Older         int64           `json:"older_bytes"`
	Limit         *int64          `json:"limit_bytes,omitempty"`
	Settings      []replayedJSON  `json:"settings"`
	Check         replayCheckJSON `json:"check"`
	Notes         []string        `json:"notes"`
}

type replayedJSON struct {
	Text     string `json:"alloc_conf"`
	Recorded bool   `json:"recorded"`
	Reserved int64  `json:"reserved_bytes"`
	Live     int64  `json:"live_bytes"`
	Needed   int64  `json:"needed_bytes"`
	Stranded int64  `json:"stranded_bytes"`
	Calls    int64  `json:"driver_calls"`
	Retries  int64  `json:"retries"`
	Failed   int64  `json:"failed"`
	// Unmet are bounds of the settings that nothing in the record reached.
	Unmet []string `json:"not_met"`
}

type replayCheckJSON struct {
	Known    bool     `json:"settings_known"`
	Exact    bool     `json:"exact"`
	Segments int      `json:"segments"`
	Same     int      `json:"same_segments"`
	Extra    int      `json:"extra_segments"`
	Allocs   int64    `json:"allocations"`
	Placed   int64    `json:"placed_as_recorded"`
	Reserved int64    `json:"reserved_bytes"`
	Modelled int64    `json:"modelled_bytes"`
	Why      []string `json:"not_modelled"`
}

// JSON writes a replay as JSON, best settings first.
func (r *Replay) JSON(w io.Writer) error {
	f := r.Fidelity
	out := replayJSON{SchemaVersion: schemaVersion, Device: deviceName(r.Snapshot.Devices[r.Player.Device()]), Events: r.Player.Events(), Older: int64(r.Player.Older()), Notes: r.traps(),
		Check: replayCheckJSON{r.Known, f.Exact(), f.Segments, f.Same, f.Extra, f.Allocs, f.Placed, int64(f.Reserved), int64(f.Modelled), append([]string{}, f.Why...)}}
	if limit := int64(r.Player.Limit); limit > 0 {
		out.Limit = &limit
	}
	for _, b := range r.best() {
		out.Settings = append(out.Settings, replayedJSON{b.Settings.Text, b.Recorded, int64(b.Reserved), int64(b.Live), int64(b.Needed), int64(b.Stranded), b.Calls, b.Retries, b.Failed, append([]string{}, b.Unmet...)})
	}
	return writeJSON(w, out)
}
