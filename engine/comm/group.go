// Package comm lets ranks train together in one process: each is a goroutine with
// a device, operations and kernels of its own, and they meet in collectives.
//
// What crosses from rank to rank goes through the host's memory. The buffers that
// a collective takes on a device are owned by it, as snapshot.OwnedByComm says.
package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
)

// Devices returns one device for each of so many ranks, which differ by their
// Index. The caller closes them.
func Devices(ranks int, driver mem.Driver, o mem.Options) []*mem.Device {
	devices := make([]*mem.Device, ranks)
	for i := range devices {
		o.Index = i
		devices[i] = mem.NewDevice(driver, o)
	}
	return devices
}

// Group is ranks that train together.
type Group struct {
	kernels func() engine.Kernels
	devices []*mem.Device

	mu    sync.Mutex
	turn  *sync.Cond // a round was completed, or the group broke
	round *round     // that ranks are arriving at
	gone  []int      // ranks that have ended
	cause error      // why no collective can be completed any more; nil while all is well
}

// round is one collective: what each rank has brought to it.
type round struct {
	brought []parcel
	arrived int
}

// NewGroup returns a group with one rank a device, in this order. kernels makes
// those of one rank; the device's driver must be their own.
func NewGroup(kernels func() engine.Kernels, devices ...*mem.Device) *Group {
	g := &Group{kernels: kernels, devices: devices}
	g.turn = sync.NewCond(&g.mu)
	return g
}

func (g *Group) newRound() *round { return &round{brought: make([]parcel, len(g.devices))} }

// Run calls f once for each rank, each in a goroutine of its own, and returns when
// all have ended. Collectives that a rank has begun end with an error once another
// rank has ended, or ctx; Run returns the error of the rank that ended first
// with one. A panic of f goes on in the goroutine of Run, unless it is the panic of a
// misused operation, an *engine.Error, which becomes the rank's error. One Run
// goes on at a time.
func (g *Group) Run(ctx context.Context, f func(*Rank) error) error {
	g.round, g.gone, g.cause = g.newRound(), nil, nil
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		g.fail(ctx.Err())
	})
	defer func() {
		if !stop() {
			<-told // or it would end the next Run
		}
	}()
	var ranks sync.WaitGroup
	panics := make(chan any, len(g.devices))
	for i, d := range g.devices {
		r := &Rank{group: g, index: i, ops: engine.NewEager(g.kernels(), d)}
		ranks.Go(func() {
			// Whatever becomes of f, the others are not left waiting.
			err := errors.New("it has panicked")
			defer func() { g.leave(i, err) }()
			defer func() {
				if p := recover(); p != nil {
					if e, ok := p.(error); ok && isMisuse(e) {
						err = e
						return
					}
					panics <- fmt.Sprintf("rank %d: %v\n%s", i, p, debug.Stack())
				}
			}()
			err = f(r)
		})
	}
	ranks.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

func isMisuse(err error) bool {
	_, ok := errors.AsType[*engine.Error](err)
	return ok
}

// fail ends the round that is going on and all that would come. The first cause
// stays.
func (g *Group) fail(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failLocked(cause)
}

func (g *Group) failLocked(cause error) {
	if g.cause == nil {
		g.cause = cause
		g.turn.Broadcast()
	}
}

// leave notes that a rank has ended.
func (g *Group) leave(rank int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = append(g.gone, rank)
	switch {
	case err != nil:
		g.failLocked(fmt.Errorf("rank %d: %w", rank, err))
	case g.round.arrived > 0:
		g.failLocked(g.missed())
	}
}

// missed says that a round waits for a rank that will not come.
func (g *Group) missed() error {
	for rank, p := range g.round.brought {
		if p.op != "" {
			return fmt.Errorf("rank %d is in %s, and rank %d has ended; every rank takes part in every collective", rank, p.op, g.gone[0])
		}
	}
	return fmt.Errorf("rank %d has ended", g.gone[0])
}

// meet brings a parcel to the round and returns all, by rank, once every rank is
// there. What was brought is nobody's to change from then on.
func (r *Rank) meet(p parcel) ([]parcel, error) {
	g := r.group
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.round
	now.brought[r.index] = p
	now.arrived++
	switch {
	case g.cause != nil:
	case len(g.gone) > 0:
		g.failLocked(g.missed())
	case now.arrived == len(g.devices):
		g.round = g.newRound()
		g.turn.Broadcast()
	default:
		for g.round == now && g.cause == nil {
			g.turn.Wait()
		}
	}
	if now.arrived < len(g.devices) || g.round == now {
		return nil, fmt.Errorf("%s: %w", p.op, g.cause)
	}
	for rank, other := range now.brought {
		if first := now.brought[0]; !other.matches(first) {
			return nil, fmt.Errorf("rank %d is in %v, rank 0 in %v; every rank takes part in the same collective", rank, other, first)
		}
	}
	return now.brought, nil
}
