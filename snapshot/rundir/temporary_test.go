package rundir

import "testing"

// What goes at a recording's end is removed and passed over by its name: it must be no name that a program may give a file.
func TestTemporaryNamesAreThoseOfRecordingsAlone(t *testing.T) {
	for _, name := range []string{
		InfoName, RankInfoName(3), SeriesName, "snapshot_40.memdiag", "snapshot_40_rank3.json", "processes.csv", "host_rank3.csv",
	} {
		if !IsTemporary(temporaryName(name)) {
			t.Errorf("%s is written as %s, which is not known as temporary", name, temporaryName(name))
		}
		if IsTemporary(name) {
			t.Errorf("%s counts as temporary", name)
		}
	}
	for _, name := range []string{".tmp", ".bashrc.tmp", "notes.tmp", ".model.pt.tmp", "snapshot_40.json.tmp", ".claim_steps", "agent.json", ".snapshot_x.memdiag.tmp"} {
		if IsTemporary(name) {
			t.Errorf("%s of a program counts as a recording's", name)
		}
	}
}
