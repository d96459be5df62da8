package train_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// forgetful keeps what each step computed.
type forgetful struct{ kept []*engine.Tensor }

// record trains for ten steps and records them in a folder: Create it, hang a
// recorder on the loop's barriers, Wait for its last snapshot, Finish the folder.
func record(folder string) error {
	const steps, every = 10, 5
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), device)
	model := new(forgetful)

	out, err := rundir.Create(folder, snapshot.Info{Workload: "forgetful", Steps: steps, Every: every})
	if err != nil {
		return err
	}
	recorder, err := train.NewRecorder(out, every, steps, func(s *snapshot.Snapshot) {
		s.Holders = train.Holders(model, s, device)
	}, device)
	if err != nil {
		return err
	}
	loop := train.Loop{Devices: []*mem.Device{device}, Now: time.Now}
	loop.OnBarrier(recorder.Barrier)
	trained := loop.Run(context.Background(), steps, func() (m train.Metrics, err error) {
		err = engine.Run(o, func(*engine.Scope) error {
			model.kept = append(model.kept, o.Neg(o.Full(1, 4)).Keep()) // the leak
			return o.Sync()
		})
		return m, err
	})

	if err := recorder.Wait(); err != nil {
		return errors.Join(trained, err)
	}
	exitCode := 0
	if trained != nil {
		exitCode = 1
	}
	return errors.Join(trained, out.Finish(exitCode, time.Now()))
}

// A run's folder is what memdiag reads: memdiag show, diff and plot take it.
func ExampleRecorder() {
	parent, err := os.MkdirTemp("", "runs")
	if err != nil {
		log.Fatal(err)
	}
	folder := filepath.Join(parent, "leak")
	recorded := record(folder)
	files, err := os.ReadDir(folder)
	_ = os.RemoveAll(parent)
	if err := errors.Join(recorded, err); err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Name())
	}
	// Output:
	// run.json
	// series.memdiag
	// snapshot_0.memdiag
	// snapshot_10.memdiag
	// snapshot_5.memdiag
}
