package fleet

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func TestARunThatFailedRanOutOfMemoryOnlyIfSomethingSaysSo(t *testing.T) {
	killed := []string{snapshot.KernelKilled + "the machine had no memory left"}
	for name, c := range map[string]struct {
		code  int
		notes []string
		ooms  int64
		want  string
	}{
		"a bug":                            {1, nil, 0, "failed"},
		"somebody's signal":                {137, []string{"another process sent the signal that killed it"}, 0, "killed"},
		"the kernel":                       {137, killed, 0, OutOfMemory},
		"the device":                       {1, nil, 1, OutOfMemory},
		"an error that the program caught": {0, nil, 1, "ended"},
	} {
		run := &snapshot.Run{Path: "/run", Info: snapshot.Info{Started: epoch, Finished: new(time.Time), ExitCode: &c.code, Notes: c.notes}}
		collector := NewCollector(run, About{})
		collector.ranOut = ranOut(run, &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA, OutOfMemory: c.ooms}}})
		if got := collector.Tables()["runs"].Columns[6].Texts[0]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
