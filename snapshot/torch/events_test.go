package torch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/torch"
)

// The allocator empties its cache for want of memory and takes a segment by one call; the program empties it by another.
func TestRecordTellsRetriesFromEmptyCache(t *testing.T) {
	const stackA, stackB = `"frames":[{"name":"a","filename":"a.py","line":1}]`, `"frames":[{"name":"b","filename":"b.py","line":2}]`
	text := `{"segments":[],"allocator_settings":{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True","max_split_size":67108864,"expandable_segments":true},"device_traces":[[
{"action":"segment_free","addr":2097152,"size":2097152,"stream":0,` + stackA + `},
{"action":"segment_alloc","addr":4194304,"size":2097152,"stream":0,` + stackA + `},
{"action":"alloc","addr":4194304,"size":100,"stream":5,` + stackA + `},
{"action":"segment_free","addr":6291456,"size":2097152,"stream":0,` + stackB + `},
{"action":"segment_alloc","addr":8388608,"size":2097152,"stream":0,` + stackA + `},
{"action":"oom","size":100,"device_free":7,"stream":0,` + stackA + `},
{"action":"alloc","addr":5,"size":9007199254740992,"stream":0}]]}`
	s, err := torch.Decode("x.json", strings.NewReader(text), int64(len(text)), torch.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Records[0]
	if !slices.Equal(r.Retries, []int{1}) {
		t.Errorf("retries %v, want the second event", r.Retries)
	}
	kinds := []snapshot.EventKind{snapshot.EventSegmentFree, snapshot.EventSegmentAlloc, snapshot.EventAlloc, snapshot.EventSegmentFree, snapshot.EventSegmentAlloc, snapshot.EventOOM, snapshot.EventOther}
	for i, want := range kinds {
		if got := r.Events[i].Kind(); got != want {
			t.Errorf("event %d is of kind %d, want %d", i, got, want)
		}
	}
	if e := r.Events[2]; e.Address != 4194304 || e.Bytes() != 100 || r.Streams[e.Stream()] != 5 {
		t.Errorf("%+v", e)
	}
	if e := r.Events[5]; e.Address != 7 || e.Bytes() != 100 {
		t.Errorf("%+v", e)
	}
	if c := s.Allocator; c == nil || *c != (snapshot.AllocatorConf{Text: "expandable_segments:True", MaxSplit: 64 << 20, Expandable: true}) {
		t.Errorf("settings %+v", c)
	}
}
