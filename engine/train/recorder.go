package train

import (
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Recorder writes what devices hold to a run's folder: counters of every site at
// each barrier, and every block at some of them. Blocks are copied while the
// training stands; they are encoded and written meanwhile.
type Recorder struct {
	out     *rundir.Writer
	devices []*mem.Device
	rank    int
	every   int64
	final   int64
	holders func(*snapshot.Snapshot)
	begun   bool // the first barrier of the training has come

	series *mem.Series
	log    *native.SeriesWriter
	sites  []int32        // what a site of the series is in the log
	last   *snapshot.Mark // of the last barrier, if its blocks were not recorded
	// writing carries the outcome of the snapshot that is being written; nil
	// while none is.
	writing chan error
}

// NewRecorder records to out: counters at every barrier, blocks after every
// every-th training step, and after the final one. An every of 0 or less records
// the blocks at the first barrier and the final one only. holders, if not nil,
// adds to each snapshot who holds its blocks; it runs while the training stands.
func NewRecorder(out *rundir.Writer, every, final int64, holders func(*snapshot.Snapshot), devices ...*mem.Device) (*Recorder, error) {
	return NewRankRecorder(out, snapshot.NoRank, every, final, holders, devices...)
}

// NewRankRecorder is NewRecorder for one rank of several that share out. Each has
// a recorder for its own goroutine.
func NewRankRecorder(out *rundir.Writer, rank int, every, final int64, holders func(*snapshot.Snapshot), devices ...*mem.Device) (*Recorder, error) {
	r := &Recorder{out: out, devices: devices, rank: rank, every: every, final: final, holders: holders, series: mem.NewSeries(devices...)}
	var err error
	if table := r.series.Series().Devices; rank == snapshot.NoRank {
		r.log, err = out.OpenSeries(table)
	} else {
		r.log, err = out.OpenRankSeries(rank, table)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Barrier records the devices at a mark between two steps. An error means that
// this mark is not recorded; what was before stays readable.
func (r *Recorder) Barrier(mark snapshot.Mark) error {
	if err := r.append(mark); err != nil {
		return err
	}
	// Blocks are compared between marks of one phase.
	if mark.Phase != Training {
		return nil
	}
	if mark.Step == r.final {
		mem.Collect()
		return r.snapshot(mark)
	}
	if r.due(mark.Step) {
		return r.snapshot(mark)
	}
	r.last = &mark
	return nil
}

// due reports whether blocks are recorded after a step that is not the final one.
func (r *Recorder) due(step int64) bool {
	first := !r.begun
	r.begun = true
	if r.every <= 0 {
		return first
	}
	return step%r.every == 0
}

// Final records the blocks of a run that ended before its time, under the mark
// of the last barrier, unless that has them already. Call it after the failed
// step's temporaries are gone.
func (r *Recorder) Final() error {
	if r.last == nil {
		return nil
	}
	mem.Collect()
	return r.snapshot(*r.last)
}

func (r *Recorder) snapshot(mark snapshot.Mark) error {
	r.last = nil
	s := mem.Take(mark, r.devices...)
	s.Rank = r.rank
	if r.holders != nil {
		r.holders(s)
	}
	if err := r.Wait(); err != nil {
		return err
	}
	r.writing = make(chan error, 1)
	go func() { r.writing <- r.write(s) }()
	return nil
}

func (r *Recorder) write(s *snapshot.Snapshot) error {
	if r.rank == snapshot.NoRank {
		return r.out.WriteSnapshot(s.Mark.Step, s)
	}
	return r.out.WriteRankSnapshot(s.Mark.Step, s)
}

func (r *Recorder) append(mark snapshot.Mark) error {
	r.series.Append(mark)
	s := r.series.Series()
	for _, site := range s.Sites[len(r.sites):] {
		id, err := r.log.AddSite(site.Device, s.Stacks.Frames(site.Stack))
		if err != nil {
			return err
		}
		r.sites = append(r.sites, id)
	}
	point := s.Points[0]
	s.Points = s.Points[:0]
	for i := range point.Sites {
		point.Sites[i].Site = r.sites[point.Sites[i].Site]
	}
	return r.log.AppendPoint(point)
}

// Wait returns when nothing is being written any more, with the error of the
// last snapshot. Call it before the folder is finished.
func (r *Recorder) Wait() error {
	if r.writing == nil {
		return nil
	}
	err := <-r.writing
	r.writing = nil
	return err
}
