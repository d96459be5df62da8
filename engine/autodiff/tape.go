package autodiff

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
)

// Tape holds recorded nodes, and lets them go.
type Tape interface {
	// Hold takes a new node in. The history that it returns, with one reference,
	// goes to the node's tensor.
	Hold(n *Node) engine.History
	// Plain is called with the result of an operation that no gradient goes through.
	Plain(op string, out *engine.Tensor)
	// Reach lists the nodes that lead to root, in any order, and changes nothing.
	// It is an error if gradients went through one of them before. keep says that
	// the graph is to stay after the pass.
	Reach(root *Node, keep bool) ([]*Node, error)
	// Take begins a pass through these nodes: none of them may be freed until it is
	// left.
	Take(nodes []*Node)
	// Leave ends a node's part in the pass, outputs before inputs; nothing will be
	// read from it in this pass any more. gone is false where it is to stay for
	// another.
	Leave(n *Node, gone bool)
	// Done ends the pass through these nodes.
	Done(nodes []*Node)
	// Nodes counts the nodes held, leaves included.
	Nodes() int
}

// graph is the tape that New uses: it holds nothing. A tensor's history is its
// node, nodes count their references, and the last one lets a node go.
type graph struct{ alive int }

func (g *graph) Hold(n *Node) engine.History {
	for _, in := range n.inputs {
		if in == nil {
			continue
		}
		if in.owner == nil {
			panic(&engine.Error{Op: n.op, Reason: "an operand is tracked by another tape; use the Ops that tracked it"})
		}
		in.Retain()
	}
	n.owner, n.refs = g, 1
	g.alive++
	return n
}

// walk is a mark of one Reach, unlike any other's: nodes of several Ops
// may be on its way.
type walk struct{ _ byte }

func (*graph) Plain(string, *engine.Tensor) {}

func (*graph) Reach(root *Node, _ bool) ([]*Node, error) {
	if root.owner == nil {
		return nil, fmt.Errorf("backward: the loss is tracked by another tape; use the Ops that computed it")
	}
	walk := new(walk)
	root.walk = walk
	nodes := []*Node{root}
	for at := 0; at < len(nodes); at++ {
		n := nodes[at]
		if n.spent {
			return nil, SpentError(n)
		}
		for _, in := range n.inputs {
			if in != nil && in.walk != walk {
				in.walk = walk
				nodes = append(nodes, in)
			}
		}
	}
	return nodes, nil
}

// SpentError says that gradients went through a node before.
func SpentError(n *Node) error {
	return fmt.Errorf("backward: %s was gone through before, and what it saved was released; compute the loss again, keep the graph, or Detach what comes from an earlier step", n.op)
}

func (*graph) Take(nodes []*Node) {
	for _, n := range nodes { // one is let go while later ones are still to come
		n.Retain()
	}
}

func (*graph) Leave(n *Node, gone bool) {
	defer n.Release()
	if gone && !n.Leaf() {
		var room [2]*Node
		defer release(n.appendInputs(room[:0]))
		n.Free()
	}
}

func (*graph) Done([]*Node) {}

func (g *graph) Nodes() int { return g.alive }

// Retain adds a reference.
func (n *Node) Retain() { n.refs++ }

// Release takes a reference back. The last one releases what the node saved, its
// gradient and its inputs, and so on down the chain.
func (n *Node) Release() { release([]*Node{n}) }

// release goes by a list, since a chain may be longer than a call stack should
// be. A panic on the way, because somebody else has released what a node owns,
// goes on when the others are released.
func release(list []*Node) {
	defer func() {
		if len(list) > 0 {
			release(list)
		}
	}()
	for len(list) > 0 {
		n := list[len(list)-1]
		list = list[:len(list)-1]
		if n.refs--; n.refs > 0 {
			continue
		}
		if n.owner != nil {
			n.owner.alive--
		}
		list = n.appendInputs(list)
		n.drop()
	}
}

// drop releases the gradient, then all else, also if the gradient panics.
func (n *Node) drop() {
	defer n.Free()
	n.DropGrad()
}

// appendInputs appends the inputs to a list: once the node is freed, their
// references are the caller's.
func (n *Node) appendInputs(list []*Node) []*Node {
	for _, in := range n.inputs {
		if in != nil {
			list = append(list, in)
		}
	}
	return list
}
