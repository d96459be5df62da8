package report

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Nodes of autograd's graph are counted as blocks of a device, and their sizes are unknown. The memory that a leak of nodes takes is
// read from the process.

// Clause is a leak as a clause: its rate, what it is, and its place. Paths are relative to here.
func Clause(f *diff.Finding, here Folder) string { return here.Text(unglued(clauseOf(f))) }

func clauseOf(f *diff.Finding) string {
	rate := bytesRate(f.Rate)
	switch {
	case unsized(f.Rate):
		rate = blocksRate(f.Rate, noun(f))
	case unsteady(f):
		rate = signed(grown(f)) + " (no steady rate)"
	}
	switch {
	case ofItems(f) && f.Headline < 0:
		return rate + " held by " + glue("`"+brief(f.Holder.Path)+"`") + ", source line unknown"
	case ofItems(f) && !filled(f):
		return rate + " held by " + glue("`"+brief(f.Holder.Path)+"`") + ", allocated " + atPlace(f)
	case ofItems(f):
		return rate + " held by " + glue("`"+brief(f.Holder.Path)+"`") + ", filled " + atPlace(f)
	case ofNodes(f) && f.Holder != nil:
		return rate + ", the autograd graph held by " + glue("`"+brief(f.Holder.Path)+"`") + ", " + atPlace(f)
	case f.Nodes != nil && itemsBehind(f) || f.Beside > 0:
		return rate + " allocated " + atPlace(f) + ", with all else that " + glue("`"+brief(f.Holder.Path)+"`") + " holds"
	case f.Nodes != nil && !ofProcess(f):
		return rate + " allocated " + atPlace(f) + ", with its autograd graph"
	}
	return rate + " allocated " + atPlace(f)
}

// ofNodes reports whether the leaking blocks are nodes of autograd's graph.
func ofNodes(f *diff.Finding) bool { return f.Rows[0].Device.Kind == snapshot.Graph }

// ofItems reports whether the leaking blocks are items of a container.
func ofItems(f *diff.Finding) bool { return f.Rows[0].Device.Kind == snapshot.Items }

// filled reports whether the line of a leak of items makes the container longer. Otherwise it is the line where malloc's memory grows.
func filled(f *diff.Finding) bool { return ofItems(f) && f.Holder.From != snapshot.NoStack }

// ofProcess reports whether the growth of the process shows how much memory a leak takes.
func ofProcess(f *diff.Finding) bool { return ofNodes(f) || ofItems(f) }

// noun is the name of a finding's blocks.
func noun(f *diff.Finding) string {
	if ofNodes(f) {
		return "node"
	}
	if ofItems(f) {
		return f.Holder.Noun()
	}
	return "block"
}

// itemsBehind reports whether the items that hold the leaking blocks were counted.
func itemsBehind(f *diff.Finding) bool {
	return slices.ContainsFunc(f.Behind, func(row *diff.Row) bool { return row.Device.Kind == snapshot.Items })
}

// grown is the whole growth of a finding, with the nodes of its graph and the other objects that its holder retains.
func grown(f *diff.Finding) snapshot.Bytes { return f.Growth().Bytes + nodesOf(f) + f.Beside }

// nodesOf is the memory of the nodes of a finding's graph, as far as the growth of the process shows it.
func nodesOf(f *diff.Finding) snapshot.Bytes {
	if f.Nodes == nil {
		return 0
	}
	return f.Nodes.Growth
}

// moreBehind reports whether a finding has the process's rate, because the graph or the objects that its holder retains take more
// memory than its blocks.
func moreBehind(f *diff.Finding) bool { return !ofNodes(f) && nodesOf(f)+f.Beside > f.Growth().Bytes }

// graphText is the size of a finding's graph, or of its items; "" if there is none or it is unknown.
func graphText(f *diff.Finding) string {
	if f.Nodes == nil {
		return ""
	}
	return "about " + glue(f.Nodes.Growth.String()) + ": growth of the process beyond recorded stacks, " + f.Nodes.Between()
}

// besideText is what else the holder of a finding retains in other memory; "" for nothing.
func besideText(f *diff.Finding) string {
	if f.Beside <= 0 {
		return ""
	}
	at := slices.IndexFunc(f.Behind, func(row *diff.Row) bool { return row.Growth().Bytes > 0 })
	device := f.Behind[at].Device
	return signed(f.Beside) + " " + glue("on "+deviceName(device))
}
