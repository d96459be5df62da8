package replay_test

import (
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/replay"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// opened is a player of a file's record; nil where the file has none.
func opened(t *testing.T, path string) (*replay.Player, replay.Settings) {
	t.Helper()
	start, err := files.Opener{At: snapshot.At{Kind: snapshot.AtStart}, Record: true}.Open(path)
	if err != nil {
		return nil, replay.Settings{}
	}
	end, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.New(start, end, -1)
	if err != nil {
		return nil, replay.Settings{}
	}
	settings, _, err := replay.Recorded(end)
	if err != nil {
		t.Fatal(err)
	}
	return p, settings
}

// All that are recordings: mosaic_output.pickle is made by a script, at random addresses.
func TestTheRecordedSettingsGiveTheRecordedSegments(t *testing.T) {
	paths, _ := filepath.Glob("../../shared/data/torch/*.p*")
	if len(paths) == 0 {
		t.Skip("no ../shared/data/torch")
	}
	played := 0
	for _, path := range paths {
		p, settings := opened(t, path)
		if p == nil {
			continue
		}
		f := p.Check(settings)
		if filepath.Base(path) == "mosaic_output.pickle" {
			if f.Exact() {
				t.Errorf("%s: no allocator made these addresses: %+v", path, f)
			}
			continue
		}
		played++
		if !f.Exact() || f.Placed != f.Allocs || f.Modelled != f.Reserved {
			t.Errorf("%s: %+v", path, f)
		}
	}
	if played < 9 {
		t.Errorf("played %d files, want 9 or more", played)
	}
}
