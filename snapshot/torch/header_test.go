package torch_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/torch"
)

func TestTheRecordersHeaderTellsWhatTheDriverSays(t *testing.T) {
	type device struct{ driver, limit snapshot.Bytes }
	const unknown = snapshot.Unknown
	for _, c := range []struct {
		name, header string
		want         []device
		whole        bool
	}{
		{"of each GPU", `"driver":"5000,6000","driver_whole":0,"limit":"7000,8000"`, []device{{5000, 7000}, {6000, 8000}}, false},
		{"-1 is unknown, and so is what is not listed", `"driver":"-1","limit":"7000"`, []device{{unknown, 7000}, {unknown, unknown}}, false},
		{"the figure of all processes is said to be that", `"driver":"5000,6000","driver_whole":1`, []device{{5000, unknown}, {6000, unknown}}, true},
		{"what is no number of bytes is unknown", `"driver":"x,99999999999999999999","limit":",,,"`, []device{{unknown, unknown}, {unknown, unknown}}, false},
		{"more than there are GPUs are left out", `"driver":"` + strings.Repeat("1,", 5000) + `1"`, []device{{1, unknown}, {1, unknown}}, false},
		{"values of another type are passed over", `"driver":5000,"driver_whole":"1","limit":[7000]`, []device{{unknown, unknown}, {unknown, unknown}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"segments":[{"device":1,"address":65536,"total_size":512,"stream":0,"segment_type":"small",
				"blocks":[{"address":65536,"size":512,"requested_size":500,"state":"active_allocated","frames":[]}]}],"device_traces":[],"memdiag":{"step":1,%s}}`, c.header)
			s, err := torch.Decode("test", strings.NewReader(text), int64(len(text)), torch.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []device
			for _, d := range s.Devices {
				got = append(got, device{d.Meters.Driver, d.Limit})
			}
			whole := slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "of the whole GPU") })
			if !slices.Equal(got, c.want) || whole != c.whole {
				t.Errorf("%v, want %v; notes %q", got, c.want, s.Notes)
			}
		})
	}
}

func TestTheRecordersHeaderTellsPeaksAndRetries(t *testing.T) {
	text := `{"segments":[{"device":1,"address":65536,"total_size":512,"stream":0,"segment_type":"small","blocks":[]}],"device_traces":[],
		"memdiag":{"peak":"5000,-1","retries":"2,x","ooms":"0,1","communicators":3,"nccl":"7,-8","accelerator":"xpu"}}`
	s, err := torch.Decode("test", strings.NewReader(text), int64(len(text)), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Devices; d[0].Peak != 5000 || d[0].Retries != 2 || d[1].Peak != 0 || d[1].Retries != 0 || d[0].OutOfMemory != 0 || d[1].OutOfMemory != 1 {
		t.Errorf("%+v", d)
	}
	if d := s.Devices; d[0].Kind != "xpu" || d[1].Communicators != 3 || d[0].NCCL != 7 || d[1].NCCL != 0 {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"host", "cpu", "CUDA", "../x", ""} {
		wrong := strings.Replace(text, `"xpu"`, strconv.Quote(name), 1)
		if s, err := torch.Decode("test", strings.NewReader(wrong), int64(len(wrong)), torch.Options{}); err != nil || s.Devices[0].Kind != snapshot.CUDA {
			t.Errorf("an accelerator of the name %q: %+v, %v", name, s, err)
		}
	}
}

// Threads that stamp nothing, as autograd's, allocate in the step of the events around theirs.
func TestAllocationsHaveTheStepThatTheRecorderStamped(t *testing.T) {
	event := func(action string, address int, metadata string) string {
		return fmt.Sprintf(`{"action":%q,"addr":%d,"size":512,"stream":0,"time_us":%d,"user_metadata":%s}`, action, address, 1000+address, strconv.Quote(metadata))
	}
	block := func(address int) string {
		return fmt.Sprintf(`{"address":%d,"size":512,"requested_size":512,"state":"active_allocated","frames":[]}`, address)
	}
	text := fmt.Sprintf(`{"segments":[{"device":0,"address":512,"total_size":2560,"stream":0,"segment_type":"small","blocks":[%s]}],"device_traces":[[%s]],"memdiag":{"step":7}}`,
		strings.Join([]string{block(512), block(1024), block(1536), block(2048), block(2560)}, ","),
		strings.Join([]string{event("alloc", 512, ""), event("alloc", 1024, `{"memdiag_step":5}`), event("alloc", 1536, ""),
			event("alloc", 2048, `{"step":3}`), event("alloc", 2560, `{"memdiag_step":9}`)}, ","))
	s, err := torch.Decode("test", strings.NewReader(text), int64(len(text)), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{snapshot.NoStep, 5, 5, 5, snapshot.NoStep}; !slices.Equal(s.Blocks.BirthStep, want) {
		t.Errorf("births %v, want %v", s.Blocks.BirthStep, want)
	}
}

// A recording leaves the record out of most snapshots, to spare time, and frees that were asked for out of the record.
func TestASnapshotWithoutARecordIsSaidToLackItOnlyWhereThatIsNoPlan(t *testing.T) {
	for header, noted := range map[string]bool{`"light":1`: false, `"light":0`: true} {
		text := fmt.Sprintf(`{"segments":[],"device_traces":[],"memdiag":{%s}}`, header)
		s, err := torch.Decode("test", strings.NewReader(text), int64(len(text)), torch.Options{})
		if err != nil || slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "no record of allocations") }) != noted {
			t.Errorf("%s: %+v, %v", header, s, err)
		}
	}
}

// TestARequestThatIsLargerThanItsBlockIsNotBelieved, and the notes say so.
func TestARequestThatIsLargerThanItsBlockIsNotBelieved(t *testing.T) {
	for asked, noted := range map[string]bool{"500": false, "512": false, "513": true, "144115188075855872": true} {
		text := fmt.Sprintf(`{"segments":[{"device":0,"address":65536,"total_size":512,"stream":0,"segment_type":"small",
			"blocks":[{"address":65536,"size":512,"requested_size":%s,"state":"active_allocated","frames":[]}]}],"device_traces":[]}`, asked)
		s, err := torch.Decode("test", strings.NewReader(text), int64(len(text)), torch.Options{})
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		says := slices.Contains(s.Notes, "1 request is for more than its block has: not believed, the size given is taken")
		if got := s.Blocks.Requested[0]; says != noted || got > 512 || noted && got != 512 {
			t.Errorf("a request of %s is %d; notes %q", asked, got, s.Notes)
		}
	}
}
