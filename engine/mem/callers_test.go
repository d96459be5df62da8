package mem

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// both takes the same stack in two ways, symbolised but not trimmed to this
// package, which the tests are in.
//
//go:noinline
func both() (walked, called []call) {
	var a, b [maxDepth]uintptr
	n, m := callers(a[:]), runtime.Callers(1, b[:])
	return outside(expand(a[:n])), outside(expand(b[:m]))
}

// outside drops the frames up to both's own: the two ways begin at different
// ones of them, and at different lines of both.
func outside(calls []call) []call {
	for i, c := range calls {
		if strings.HasSuffix(c.function, "mem.both") {
			return calls[i+1:]
		}
	}
	return calls
}

func inlined(f func() ([]call, []call)) ([]call, []call) { return inlinedDeeper(f) }

func inlinedDeeper(f func() ([]call, []call)) ([]call, []call) { return f() }

type visitor interface {
	visit(depth int) ([]call, []call)
}

type byValue [3]int

func (v byValue) visit(depth int) ([]call, []call) {
	if depth == 0 {
		return inlined(both)
	}
	var next visitor = &v // called through a wrapper that the compiler makes
	return next.visit(depth - 1)
}

func generic[T any](v T) ([]call, []call) {
	f := byValue{}.visit
	return f(3)
}

func TestTheWalkSeesTheStackOfRuntimeCallers(t *testing.T) {
	stacks := map[string]func() (walked, called []call){
		"plain":                      both,
		"through inlined calls":      func() ([]call, []call) { return inlined(both) },
		"through interface wrappers": func() ([]call, []call) { return byValue{}.visit(7) },
		"through generics":           func() ([]call, []call) { return generic(struct{ a, b string }{}) },
		"from a deferred call while panicking": func() (a, b []call) {
			defer func() { _ = recover() }()
			defer func() { a, b = both() }()
			panic("on purpose")
		},
		"deeper than the limit": func() ([]call, []call) {
			a, b := byValue{}.visit(3 * maxDepth)
			n := min(len(a), len(b))
			if n < maxDepth/2 {
				t.Errorf("only %d frames of a deep stack", n)
			}
			return a[:n], b[:n]
		},
		"on a goroutine of its own": func() (a, b []call) {
			done := make(chan bool)
			go func() {
				a, b = inlined(both)
				done <- true
			}()
			<-done
			return a, b
		},
	}
	for name, f := range stacks {
		t.Run(name, func(t *testing.T) {
			walked, called := f()
			if len(called) == 0 {
				t.Fatal("no stack at all")
			}
			if d := cmp.Diff(called, walked, cmp.AllowUnexported(call{})); d != "" {
				t.Errorf("runtime.Callers (-) and the walk (+) differ:\n%s", d)
			}
		})
	}
}

// grow makes the goroutine's stack move.
func grow(n int) int {
	var pad [256]byte
	if n == 0 {
		return int(pad[0])
	}
	return grow(n-1) + int(pad[n%256])
}

func TestTheWalkIsRightWhileStacksMoveAndTheCollectorRuns(t *testing.T) {
	stop := make(chan bool)
	var collector, walkers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for w := range 4 {
		walkers.Go(func() {
			for i := range 150 {
				done := make(chan string)
				go func() {
					grow((w*37 + i*11) % 400)
					walked, called := generic(i)
					done <- cmp.Diff(called, walked, cmp.AllowUnexported(call{}))
				}()
				if d := <-done; d != "" {
					t.Error(d)
				}
			}
		})
	}
	walkers.Wait()
	close(stop)
	collector.Wait()
}

func BenchmarkCapture(b *testing.B) {
	for _, depth := range []int{16, 32} {
		b.Run(fmt.Sprintf("walk/depth=%d", depth), func(b *testing.B) {
			var t siteTable
			descend(depth-3, func() {
				b.ReportAllocs()
				for b.Loop() {
					t.capture(NoSite)
				}
			})
		})
		b.Run(fmt.Sprintf("callers/depth=%d", depth), func(b *testing.B) {
			var t siteTable
			descend(depth-3, func() {
				b.ReportAllocs()
				for b.Loop() {
					var pcs [maxDepth]uintptr
					n := runtime.Callers(1, pcs[:])
					t.intern(pcs[:n], NoSite)
				}
			})
		})
	}
}

//go:noinline
func descend(depth int, f func()) {
	if depth == 0 {
		f()
		return
	}
	descend(depth-1, f)
}
