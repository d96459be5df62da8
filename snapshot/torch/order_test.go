package torch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestATraceWithoutTimesHasAnOrder: older PyTorch's events have no times, and their order is one of births.
func TestATraceWithoutTimesHasAnOrder(t *testing.T) {
	const (
		old   = `{"action":"free_completed","addr":4096,"size":512}`
		alloc = `{"action":"alloc","addr":%d,"size":512%s}`
		block = `{"address":%d,"size":512,"requested_size":512,"state":"active_allocated"}`
	)
	events := func(more string) string {
		list := []string{old}
		for _, address := range []int{512, 1024, 512} {
			list = append(list, fmt.Sprintf(alloc, address, more))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	segment := `{"device":0,"address":0,"total_size":1536,"blocks":[` + fmt.Sprintf(block, 0) + "," + fmt.Sprintf(block, 512) + "," + fmt.Sprintf(block, 1024) + `]}`
	for name, c := range map[string]struct {
		traces string
		want   []int64
	}{
		"one device":          {events(""), []int64{0, 4, 3}},
		"an idle one beside":  {events("") + ",[]", []int64{0, 4, 3}},
		"two devices":         {events("") + "," + events(""), nil},
		"a trace with times":  {events(`,"time_us":7`), nil},
		"nothing that stayed": {"[" + old + "]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(`{"segments":[` + segment + `],"device_traces":[` + c.traces + `]}`)
			s, err := Decode("f", bytes.NewReader(text), int64(len(text)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Blocks.BirthEvent, c.want) {
				t.Errorf("births %v, want %v", s.Blocks.BirthEvent, c.want)
			}
			if timed := strings.Contains(c.traces, "time_us"); (s.Blocks.BirthTime != nil) != timed {
				t.Errorf("times %v", s.Blocks.BirthTime)
			}
		})
	}
}
