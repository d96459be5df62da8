package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/report"
)

func TestTheDocsListTheCatalogue(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "causes.md")
	var want bytes.Buffer
	if err := report.CausesMarkdown(&want, cause.All()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.String(), string(got)); d != "" {
		t.Errorf("go run ./cmd/memdiag explain --format md -o docs/causes.md writes it anew (-want +got)\n%s", d)
	}
}

func TestEveryWorkloadOfACauseExistsAndItsCauseIsThatOne(t *testing.T) {
	named := make(map[string]string)
	for _, c := range cause.All() {
		for _, id := range c.Workloads {
			w, err := workload.Find(id)
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
				continue
			}
			if w.Cause != "" && w.Cause != c.ID {
				t.Errorf("%s is to show %s, and says %s of itself", id, c.ID, w.Cause)
			}
			named[w.ID] = c.ID
		}
	}
	for _, w := range workload.All() {
		if w.Label == workload.Leak && named[w.ID] != w.Cause {
			t.Errorf("%s has the cause %q, whose entry does not name it", w.ID, w.Cause)
		}
	}
}

func TestCausesAreCompletedAndGuessed(t *testing.T) {
	ids, _ := completeCause(nil, nil, "gra")
	if len(ids) != 3 || !strings.HasPrefix(ids[0], "graph-retained\t") {
		t.Errorf("gra completes to %q", ids)
	}
	if ids, _ := completeCause(nil, []string{"graph-retained"}, ""); len(ids) != 0 {
		t.Errorf("a second cause is offered: %q", ids)
	}
	for asked, want := range map[string]string{"lists-kept": "activations-kept or ", "hook": "hook-not-removed", "xyz": "memdiag explain lists the causes"} {
		err := unknownCause(asked)
		said, ok := errors.AsType[*hinted](err)
		if !ok || !strings.Contains(said.hint, want) {
			t.Errorf("%q: %v, %+v", asked, err, said)
		}
	}
}
