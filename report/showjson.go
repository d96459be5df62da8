package report

import (
	"io"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/category"
)

type showJSON struct {
	SchemaVersion int              `json:"schema_version"`
	Mark          markJSON         `json:"mark"`
	Moment        *momentJSON      `json:"moment,omitempty"`
	Live          tallyJSON        `json:"live"`
	NumSites      int              `json:"num_sites"`
	WithoutStack  tallyJSON        `json:"without_stack"`
	Devices       []showDeviceJSON `json:"devices"`
	Sites         []showSiteJSON   `json:"sites"`
	Groups        []groupJSON      `json:"groups,omitempty"` // by operator or module, if requested
	Source        *sourceJSON      `json:"source,omitempty"` // by line of a file, if requested
	Ages          *agesJSON        `json:"ages,omitempty"`
	FirstVerdict  firstVerdictJSON `json:"first_verdict"`
	History       historyJSON      `json:"history"`
	OlderThanIt   *tallyJSON       `json:"older_than_history,omitempty"` // live blocks
	Notes         []string         `json:"notes"`
}

type showDeviceJSON struct {
	Device        string           `json:"device"`
	Name          string           `json:"name,omitempty"`
	Limit         *int64           `json:"limit_bytes,omitempty"`
	Meters        metersJSON       `json:"meters"`
	Waterfall     map[string]int64 `json:"waterfall"`
	Fragmentation *fragmentsJSON   `json:"fragmentation,omitempty"`
	// Categories are the uses of its live memory, largest first; absent if none is known.
	Categories []categoryJSON `json:"categories,omitempty"`
}

type fragmentsJSON struct {
	FreeBlocks     int       `json:"free_blocks"`
	Free           int64     `json:"free_bytes"`
	LargestFree    int64     `json:"largest_free_bytes"`
	EmptySegments  int       `json:"empty_segments"`
	Empty          int64     `json:"empty_segment_bytes"`
	PinnedSegments int       `json:"pinned_segments"`
	Pinned         int64     `json:"pinned_segment_bytes"`
	Pins           []pinJSON `json:"pins"`
}

type pinJSON struct {
	Hash     string `json:"stack_hash"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"segment_bytes"`
}

type showSiteJSON struct {
	Device string   `json:"device"`
	Hash   string   `json:"stack_hash"`
	Where  string   `json:"where"`
	Label  string   `json:"label,omitempty"`
	Owners []string `json:"owners"`
	// Category is the use of all of its blocks; absent if unknown.
	Category string      `json:"category,omitempty"`
	Frames   []frameJSON `json:"frames"`
	tallyJSON
}

type agesJSON struct {
	Unit     string      `json:"unit"` // "step", "time" in Unix microseconds, or "event" of the allocator's
	From     int64       `json:"from"`
	To       int64       `json:"to"`
	Quarters []tallyJSON `json:"quarters"`
	// Unseen is the part of each quarter whose allocation was not observed; it is spread evenly over steps that were not recorded. It
	// is absent if each birth was observed.
	Unseen  []tallyJSON `json:"unseen,omitempty"`
	Unknown tallyJSON   `json:"unknown"`
	// UnseenBirths are bounds for these births.
	UnseenBirths []unseenJSON `json:"unseen_births,omitempty"`
}

// unseenJSON are blocks of a site that were born in steps from to to-1.
type unseenJSON struct {
	Device string `json:"device"`
	Hash   string `json:"stack_hash"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	tallyJSON
}

type historyJSON struct {
	Events    int64      `json:"events"`
	First     *time.Time `json:"first,omitempty"`
	Last      *time.Time `json:"last,omitempty"`
	LostFrees int64      `json:"lost_frees"`
	// Process is the process of the record, if older blocks are not in the snapshot.
	Process string `json:"process,omitempty"`
}

// ShowJSON writes one snapshot as one indented object with the content of Show. It lists the o.Top largest sites, or all if that is 0
// or less. Keys for unknown values are left out. Run is as in TextOptions.
func ShowJSON(w io.Writer, s *snapshot.Snapshot, o TextOptions) error {
	top, run := o.Top, o.Run
	sites, uncounted := s.Sites(), s.Blocks.Uncounted()
	out := showJSON{
		SchemaVersion: schemaVersion, Mark: markOf(s), Moment: momentOf(s), NumSites: len(sites),
		Devices: []showDeviceJSON{}, Sites: []showSiteJSON{}, Groups: groupsJSONOf(s, o), Source: sourceJSONOf(s, o), Notes: append([]string{}, notesOn(s)...),
		History: historyJSON{Events: s.History.Events, First: knownTime(s.History.First), Last: knownTime(s.History.Last), LostFrees: s.History.LostFrees, Process: s.History.Process},
	}
	var live, bare diff.Tally
	ages := diff.Inspect(s)
	named := headsOf(ages.Findings)
	categories := category.Of(s)
	for i := range sites {
		site := &sites[i]
		held := diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested}
		live = plus(live, held)
		if site.Stack == snapshot.NoStack {
			bare = plus(bare, held)
		}
		if top > 0 && i >= top {
			continue
		}
		frames := s.Stacks.Frames(site.Stack)
		out.Sites = append(out.Sites, showSiteJSON{
			Device: deviceName(s.Devices[site.Device]), Hash: hashText(site.Hash), Where: placeOf(frames, site.Label, named.of(s.Devices[site.Device], site.Hash, frames)),
			Label: site.Label, Owners: append([]string{}, site.Owners.Names()...), Category: categoryOf(site, categories), Frames: framesOf(frames), tallyJSON: tallyOf(held, uncounted),
		})
	}
	out.Live, out.WithoutStack = tallyOf(live, uncounted), tallyOf(bare, uncounted)
	shares := sharesOf(s, categories)
	for i, shape := range shapesOf(s) {
		d := s.Devices[i]
		device := showDeviceJSON{Device: deviceName(d), Name: d.Name, Limit: knownBytes(d.Limit), Meters: metersJSONOf(s, &d), Waterfall: make(map[string]int64)}
		told := shape.parts
		if liveOnly(s, d) {
			const live, rounding = 1, 2 // how many of the waterfall's parts
			told = told[:live]
			if d.Meters.Requested != d.Meters.Allocated {
				told = shape.parts[:rounding]
			}
		} else {
			device.Fragmentation = fragmentationOf(s, shape.fragments)
		}
		for _, part := range told {
			device.Waterfall[part.key] = int64(part.bytes)
		}
		device.Categories = categoriesJSONOf(shares[i])
		out.Devices = append(out.Devices, device)
	}
	unseen := diff.UnseenBirths(s, run)
	if a, ok := agesOf(s, unseen); ok {
		out.Ages = &agesJSON{Unit: a.unit, From: a.from, To: a.to, Unknown: tallyOf(a.unknown, uncounted)}
		for i, q := range a.quarters {
			out.Ages.Quarters = append(out.Ages.Quarters, tallyOf(q, uncounted))
			if a.guessed() {
				out.Ages.Unseen = append(out.Ages.Unseen, tallyOf(a.unseen[i], uncounted))
			}
		}
		for _, u := range unseen {
			out.Ages.UnseenBirths = append(out.Ages.UnseenBirths, unseenJSON{deviceName(u.Device), hashText(u.Hash), u.From, u.To, tallyOf(u.Tally, uncounted)})
		}
	}
	if older := olderThanRecord(s); older.Blocks > 0 && s.History.Events > 0 {
		t := tallyOf(older, uncounted)
		out.OlderThanIt = &t
	}
	out.FirstVerdict = firstVerdictOf(s, ages)
	return writeJSON(w, out)
}

func fragmentationOf(s *snapshot.Snapshot, f fragments) *fragmentsJSON {
	out := &fragmentsJSON{
		f.freeBlocks, int64(f.free), int64(f.largestFree), f.emptySegments, int64(f.empty), f.pinnedSegments, int64(f.pinned), []pinJSON{},
	}
	for _, pin := range f.pins {
		out.Pins = append(out.Pins, pinJSON{hashText(s.Stacks.Hash(pin.stack)), pin.segments, int64(pin.bytes)})
	}
	return out
}

func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
