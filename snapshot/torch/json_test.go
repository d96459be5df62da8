package torch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestListsOfFramesThatCameBefore has lists that are known by their text, those that begin alike
// and end otherwise, and some that lie across the window's end.
func TestListsOfFramesThatCameBefore(t *testing.T) {
	deep := strings.Repeat(`{"name":"at::native::add(at::Tensor const&)","filename":"??","line":0}, `, 60)
	lists := []string{
		`[` + deep + `{"name":"step","filename":"a.py","line":1}]`,
		`[` + deep + `{"name":"step","filename":"a.py","line":2}]`,
		`[` + deep + `{"name":"step","filename":"a.py"}]`,
		`[` + deep + `{"name":"step","frames":[{"name":"of","line":3}],"filename":"b.py"}]`,
		`[` + deep + `1]`, `[]`, `[ ]`, `[{"name":"step"}]`,
	}
	var b bytes.Buffer
	passed := 0 // lists of something else
	b.WriteString(`{"segments":[{"total_size":51200,"blocks":[`)
	for i := range 400 {
		if i > 0 {
			b.WriteByte(',')
		}
		list := lists[i/3*5%7*i%len(lists)]
		fmt.Fprintf(&b, `{"address":%d,"size":128,"state":"active_allocated","frames":%s}`, i*128, list)
		passed += strings.Count(list, " 1]")
	}
	b.WriteString(`]}]}`)
	if b.Len() < 3*window {
		t.Fatal("it is no longer than the window")
	}
	s, err := Decode("f", bytes.NewReader(b.Bytes()), int64(b.Len()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := jsonTree(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want, err := twin(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(s); got != want {
		t.Error(firstDifference(got, want))
	}
	if note := fmt.Sprintf("%d values", passed); passed < 10 || !strings.Contains(strings.Join(s.Notes, "\n"), note) {
		t.Errorf("%q, want %q", s.Notes, note)
	}
}
