package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestARunWhoseMemoryRanOutSaysSo: also where later snapshots have no record of it.
func TestARunWhoseMemoryRanOutSaysSo(t *testing.T) {
	run := pyramid()
	if text := OutOfMemory(run.OutOfMemory()); text != "" {
		t.Errorf("without a failed request: %q", text)
	}
	failed := run.Snapshots[len(run.Snapshots)-2]
	failed.History.Refused = &snapshot.Refused{Bytes: 3 * snapshot.GiB, Free: 2 * snapshot.MiB, Stack: failed.Blocks.Stack[0], Times: 2}
	r := analyzed(t, run)
	at := whereOf(weightFrames, "").text()
	want := "out of memory on cuda:0: 3.00 GiB was asked for at " + strings.ReplaceAll(at, noBreak, " ") + ", the driver had 2.00 MiB left; 2 requests failed there (memdiag show RUN --at oom)"
	if text := OutOfMemory(run.OutOfMemory()); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) },
		"Markdown": func(b *bytes.Buffer) error { return Markdown(b, r, TextOptions{}) },
		"JSON":     func(b *bytes.Buffer) error { return JSON(b, r) },
		"show":     func(b *bytes.Buffer) error { return Show(b, failed, TextOptions{}) },
	} {
		text := string(rendered(t, write))
		if !strings.Contains(text, "ut of memory on cuda:0: 3.00 GiB was asked for") && !strings.Contains(text, `"requested_bytes": 3221225472`) {
			t.Errorf("%s says nothing of it", name)
		}
	}
}

// A block that is freed while another stream uses it is neither live nor in the cache: nothing said that it was in the way.
func TestARefusedRequestNamesWhatStreamsStillUse(t *testing.T) {
	r := &snapshot.Refused{Bytes: 9 * snapshot.MiB, Free: snapshot.MiB}
	if got := shortfall(r, fragments{}, 2*snapshot.MiB); got != "it lacked 8.00\u00a0MiB; no block was cached; 2.00\u00a0MiB had been freed, but a stream still used it" {
		t.Error(got)
	}
	if got := shortfall(r, fragments{free: snapshot.MiB, largestFree: 512}, 0); got != "it lacked 8.00\u00a0MiB; 1.00\u00a0MiB was free in the cache, the largest piece 512\u00a0B" {
		t.Error(got)
	}
}
