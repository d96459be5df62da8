package gate

import (
	"errors"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// JAX and torch.profiler name no device where nothing is live.
func TestARunThatEndsEmptyHasTheDevicesOfItsBeginning(t *testing.T) {
	cuda := []snapshot.Device{{Kind: snapshot.CUDA}}
	for _, c := range []struct {
		device      string
		first, last []snapshot.Device
		refused     string
	}{
		{"", nil, nil, ""},
		{"", cuda, nil, ""},
		{"cuda:0", cuda, nil, ""},
		{"cuda:1", cuda, cuda, "its devices: cuda:0"},
		{"cuda:1", nil, nil, "its devices: none"},
	} {
		r := &diff.Result{First: &snapshot.Snapshot{Devices: c.first}, Last: &snapshot.Snapshot{Devices: c.last}}
		err := Slice{Device: c.device}.keepDevice(r)
		var hint interface{ Hint() string }
		if (err == nil) != (c.refused == "") || err != nil && (!errors.As(err, &hint) || hint.Hint() != c.refused) {
			t.Errorf("--device %q of %v and %v: %v", c.device, c.first, c.last, err)
		}
	}
}

// What comes after a phase is another one's: that nothing of it is in the slice is no doubt.
func TestASliceEndsWithItsPhase(t *testing.T) {
	at := func(seconds int64, phase string) *snapshot.Snapshot {
		return &snapshot.Snapshot{Mark: snapshot.Mark{Step: seconds, Phase: phase, Time: time.Unix(seconds, 0)}}
	}
	finished := time.Unix(300, 0)
	run := &snapshot.Run{Info: snapshot.Info{Finished: &finished}, Snapshots: []*snapshot.Snapshot{at(10, "train"), at(20, "train"), at(30, "eval")}}
	for phase, want := range map[string]int64{"train": 30, "eval": 300} {
		part, err := Slice{Phase: phase}.of(run)
		if err != nil || part.Info.Finished.Unix() != want {
			t.Errorf("%s: %v, ends at %v, want %d", phase, err, part.Info.Finished, want)
		}
	}
}

// TestASliceHasWhatCameAfterTheLastStepByItsPhase: a leak of what serves is none of the training before.
func TestASliceHasWhatCameAfterTheLastStepByItsPhase(t *testing.T) {
	at := func(step int64, phase string) *snapshot.Snapshot {
		return &snapshot.Snapshot{Mark: snapshot.Mark{Step: step, Phase: phase}}
	}
	finished, began := time.Unix(300, 0), time.Unix(30, 0)
	after := &snapshot.Run{AfterStep: 2, Snapshots: []*snapshot.Snapshot{at(snapshot.NoStep, "serve"), at(snapshot.NoStep, "serve"), at(snapshot.NoStep, "end")}}
	after.Snapshots[0].Mark.Time = began
	worker := &snapshot.Run{Snapshots: []*snapshot.Snapshot{at(snapshot.NoStep, "")}}
	run := &snapshot.Run{Info: snapshot.Info{Finished: &finished}, Snapshots: []*snapshot.Snapshot{at(1, "train"), at(2, "train")}, Children: []*snapshot.Run{worker, after}}
	for phase, snapshots := range map[string]int{"train": 2, "serve": 2, "end": 1} {
		part, err := Slice{Phase: phase}.of(run)
		if err != nil || len(part.Snapshots) != snapshots || len(part.Children) != 1 || part.Children[0] != worker {
			t.Errorf("%s: %+v, %v", phase, part, err)
		}
		if ends := part.Info.Finished.Equal(began); ends != (phase == "train") {
			t.Errorf("%s ends at %v", phase, part.Info.Finished)
		}
	}
	if len(run.Children) != 2 || len(after.Snapshots) != 3 {
		t.Error("the run was changed")
	}
}
