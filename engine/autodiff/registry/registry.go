// Package registry is a tape that keeps every node in a registry of its own, as
// Burn's autodiff does, with the clean-up rules of Burn's history: what leaks
// under one rule and not under the next is part of the corpus.
//
// A tensor holds a token; the registry holds tokens, nodes and what these saved.
// Nothing runs when a token's last tensor goes: it is noticed in the sweep after
// the next Backward, which must tell what can still be of use. One registry may
// serve several goroutines, each with an Ops of its own.
//
// It follows what crates/burn-autodiff/src/runtime of tracel-ai/burn did at the
// pull requests that the rules name, in two points not: a node that gradients went
// through, and that a tensor still refers to, stays with its component (since #3957
// Burn's locator forgets it); and a Backward that comes to a node which is gone is
// an error (Burn ends there in silence).
package registry

import (
	"sync"
	"sync/atomic"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Rules are how Burn cleaned its registry up, from one fix to the next.
type Rules int

// The rules in the order of time. Each does what the one before does, and more.
const (
	// RulesOriginal walks from the newest nodes down, and so never comes to a leaf
	// whose children are gone (before #2347: +1 node for each parameter that an
	// optimizer replaces).
	RulesOriginal Rules = iota
	// RulesRoots also frees nodes without parents that no tensor refers to (#2347).
	// A result that was held over Backward has parents (#2487).
	RulesRoots
	// RulesAbsentParents frees nodes all of whose parents are gone (#2488).
	RulesAbsentParents
	// RulesComponents keeps each connected component as a graph of its own, and
	// sweeps the one that Backward went through (#3793). One that no Backward goes
	// through any more stays for ever: a leaf that is never differentiated (#3976),
	// and again what replaced parameters were connected to.
	RulesComponents
	// RulesAllGraphs sweeps every graph that no tensor refers to as well, but leaves
	// its entries in the index of graphs (#4039; the entries are #4345).
	RulesAllGraphs
	// RulesIndex takes the entries out of the index too (#4342).
	RulesIndex

	RulesLatest = RulesIndex
)

// Options say how a Registry works.
type Options struct {
	Rules Rules
	// Records is a device on which every node and every entry of the index is a
	// block, of the size of its record and owned by the tape, so that they show in
	// snapshots with the stack that made them. nil leaves them uncounted.
	Records *mem.Device
}

// Registry is the tape; see autodiff.NewOn.
type Registry struct {
	options Options

	mu     sync.Mutex
	tokens uint64 // registered so far
	graphs map[*graph]bool
	// index lists the nodes of each graph by the graph's first node, as Burn does,
	// to find the graph of a node; each entry has its record.
	index  map[*token]map[*token]*mem.Storage
	passes map[*autodiff.Node]*graph // under way, by their root
}

var _ autodiff.Tape = (*Registry)(nil)

// New returns an empty registry.
func New(o Options) *Registry {
	r := &Registry{
		options: o,
		graphs:  make(map[*graph]bool),
		index:   make(map[*token]map[*token]*mem.Storage),
		passes:  make(map[*autodiff.Node]*graph),
	}
	if o.Rules < RulesComponents {
		r.newGraph(nil)
	}
	return r
}

// Stats count what a registry holds.
type Stats struct {
	Nodes   int            // leaves and results of plain operations included
	Pending int            // nodes that gradients can still go through
	Graphs  int            // connected components; 1 under the rules before them
	Index   int            // entries of the index of graphs
	Saved   snapshot.Bytes // in blocks that pending nodes saved, each block once, as asked for
}

// Stats counts now.
func (r *Registry) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Graphs: len(r.graphs)}
	seen := make(map[*mem.Storage]bool)
	for g := range r.graphs {
		s.Nodes += len(g.nodes)
		for t := range g.nodes {
			if !t.pending {
				continue
			}
			s.Pending++
			for _, block := range t.Saved() {
				if !seen[block] {
					seen[block] = true
					s.Saved += snapshot.Bytes(block.Requested())
				}
			}
		}
	}
	for _, members := range r.index {
		s.Index += len(members)
	}
	return s
}

// Nodes counts the registered nodes.
func (r *Registry) Nodes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for g := range r.graphs {
		n += len(g.nodes)
	}
	return n
}

// Registered reports whether the registry still has the node of a tensor's
// history.
func (r *Registry) Registered(h engine.History) bool {
	t, ok := h.(*token)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.graph != nil
}

// token is one node's record. Tensors count their references on it.
type token struct {
	*autodiff.Node // nil for the result of a plain operation
	refs           atomic.Int64
	sequence       uint64 // of registration; a parent comes before its children
	parents        []*token
	pending        bool   // gradients can still go through, and what was saved is there
	graph          *graph // nil once it is not registered any more
	record         *mem.Storage
}

// Retain adds a tensor's reference.
func (t *token) Retain() { t.refs.Add(1) }

// Release takes a tensor's reference back. Only the gradient goes with the last
// one: it is the tensor's. The node waits for a sweep.
func (t *token) Release() {
	if t.refs.Add(-1) == 0 && t.Node != nil {
		t.DropGrad()
	}
}

func (t *token) referenced() bool { return t.refs.Load() > 0 }

// Hold registers a node. Its token has the tensor's reference from the start, and
// the caller holds the operands: no sweep comes between an operation's start and
// its registration.
func (r *Registry) Hold(n *autodiff.Node) engine.History {
	t := &token{Node: n, pending: true}
	for _, in := range n.Inputs() {
		if in == nil {
			continue
		}
		parent, ok := in.History().(*token)
		if !ok {
			panic(&engine.Error{Op: n.Op(), Reason: "an operand is tracked by another tape; use the Ops that tracked it"})
		}
		t.parents = append(t.parents, parent)
	}
	r.register(t)
	return t
}

// Plain registers the result of a plain operation too, as Burn does, where a
// tracked one may want to compute it again.
func (r *Registry) Plain(_ string, out *engine.Tensor) {
	t := &token{}
	r.register(t)
	out.Attach(t)
}

func (r *Registry) register(t *token) {
	t.refs.Store(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens++
	t.sequence = r.tokens
	t.record = r.alloc(NodeBytes())
	g := r.graphFor(t)
	for _, parent := range t.parents {
		delete(g.newest, parent)
	}
	g.newest[t] = true
	g.nodes[t] = true
	t.graph = g
}

// alloc makes the block of a record, where records are counted.
func (r *Registry) alloc(bytes snapshot.Bytes) *mem.Storage {
	if r.options.Records == nil {
		return nil
	}
	s, err := r.options.Records.Alloc(int64(bytes), snapshot.OwnedByTape)
	if err != nil {
		panic(&engine.Error{Op: "register", Err: err})
	}
	return s
}

func free(record *mem.Storage) {
	if record != nil {
		record.Release(snapshot.OwnedByTape)
	}
}
