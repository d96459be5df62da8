package mem_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/memdiag/memdiag/engine/mem"
)

// tensor is a handle as the engine has them.
type tensor struct {
	storage *mem.Storage
	witness mem.Witness
}

func newTensor(s *mem.Storage) *tensor {
	h := &tensor{storage: s}
	h.witness = mem.Watch(h, s)
	return h
}

// settle runs the collector until done, or until nothing can be expected of it
// any more.
func settle(done func() bool) {
	for range 50 {
		runtime.GC()
		if done() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestAHandleCollectedWithItsReferenceProvesALostBlock(t *testing.T) {
	d := newDevice(t, mem.Options{})
	kept := newTensor(alloc(t, d, 100))
	for range 3 {
		newTensor(alloc(t, d, 1000)) // nobody releases it, nobody can
	}
	shared := alloc(t, d, 5000)
	shared.Retain(user)
	newTensor(shared)
	newTensor(shared) // two handles lose one block
	released := newTensor(alloc(t, d, 9000))
	released.witness.Stop()
	released.storage.Release(user)
	unwatched := newTensor(alloc(t, d, 9000))
	unwatched.witness.Stop() // its reference was handed to another
	runtime.KeepAlive(unwatched)

	settle(func() bool { l := d.Lost(); return len(l) == 2 && l[1].Blocks == 3 })
	want := []mem.Lost{{Blocks: 1, Bytes: 5120}, {Blocks: 3, Bytes: 3072}}
	got := d.Lost()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(mem.Lost{}, "Site", "Stack")); d != "" {
		t.Fatal(d)
	}
	if f := functions(got[1].Stack); len(f) != 2 || f[0] != "mem_test.alloc" {
		t.Errorf("lost by %v", f)
	}
	if m := d.Meters(); m.Allocated != 512+3*1024+5120+9216 {
		t.Errorf("the witness freed memory: %s are left", m.Allocated)
	}
	runtime.KeepAlive(kept)
}

func TestAHandleCollectedAfterItsBlockWasFreedProvesNothing(t *testing.T) {
	d := newDevice(t, mem.Options{})
	collected := make(chan bool, 1)
	func() {
		h := newTensor(alloc(t, d, 100))
		h.storage.Release(user) // without Stop
		runtime.AddCleanup(h, func(c chan bool) { c <- true }, collected)
	}()
	again := alloc(t, d, 100) // the next tenant of the block
	settle(func() bool { return len(collected) > 0 })
	if len(collected) == 0 {
		t.Fatal("the collector left the handle")
	}
	if got := d.Lost(); len(got) != 0 || !again.Alive() {
		t.Errorf("lost %+v", got)
	}
}

func BenchmarkWatch(b *testing.B) {
	d := mem.NewDevice(bare{}, mem.Options{})
	s := alloc(b, d, 100)
	b.ReportAllocs()
	for b.Loop() {
		newTensor(s).witness.Stop()
	}
}
