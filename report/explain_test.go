package report

import (
	"bytes"
	"testing"

	"github.com/memdiag/memdiag/diff/cause"
)

// entry is a cause of the tests' own, so that the catalogue may change without them.
func entry() cause.Cause {
	return cause.Cause{
		ID: "socks-kept", Name: "socks kept beyond the wash",
		What: "Every wash leaves a sock behind, and somebody keeps it for the day on which the other one comes back.",
		Sign: "One sock a wash, of constant size.", Fix: "throw them away",
		Before: "if lost {\n\tdrawer = append(drawer, sock) // for later\n}", After: "sock.Release()",
		Workloads: []string{"L01", "L02"}, References: []string{"laundry#1", "laundry#2"},
	}
}

func TestExplain(t *testing.T) {
	bare := entry()
	bare.ID, bare.Workloads, bare.Before, bare.After = "socks-lost", nil, "socks.append(sock)", "del sock"
	both := []cause.Cause{entry(), bare}
	for file, write := range map[string]func(*bytes.Buffer) error{
		"causes.txt.golden":  func(b *bytes.Buffer) error { return Causes(b, both, TextOptions{Width: 60}) },
		"cause.txt.golden":   func(b *bytes.Buffer) error { return Cause(b, &both[0], "memdiag", TextOptions{Width: 60}) },
		"causebare.golden":   func(b *bytes.Buffer) error { return Cause(b, &both[1], "memdiag", TextOptions{Color: true}) },
		"causes.md.golden":   func(b *bytes.Buffer) error { return CausesMarkdown(b, both) },
		"causes.json.golden": func(b *bytes.Buffer) error { return CausesJSON(b, both) },
	} {
		t.Run(file, func(t *testing.T) {
			golden(t, file, rendered(t, func(b *bytes.Buffer) error { return write(b) }))
		})
	}
}

func TestANameKeepsItsFirstLetter(t *testing.T) {
	for text, want := range map[string]string{"loader worker 0 grew": "Loader worker 0 grew", "train.py (process 7) grew": "train.py (process 7) grew", "it grew.": "It grew."} {
		if got := upperFirst(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
