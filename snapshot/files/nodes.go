package files

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// maxNodes bounds the machines of one run.
const maxNodes = 4096

// maxLogs bounds the files beside them that are looked into.
const maxLogs = 1000

// nodesBelow are the runs below a folder if they are one training on several machines: each was recorded on another, and no
// rank is in two of them. Clocks are not compared. It is nil of other folders.
func (o Opener) nodesBelow(path string, list listing) []*Folder {
	if len(list.runs) < 2 || len(list.runs) > maxNodes || hasSnapshot(path, list.files) {
		return nil
	}
	var nodes []*Folder
	hosts, ranks := make(map[string]bool), make(map[int]bool)
	for _, name := range list.runs {
		node, err := o.LookThrough(filepath.Join(path, name))
		if err != nil || len(node.ranks) == 0 || node.about.Info.Host == "" || hosts[node.about.Info.Host] {
			return nil
		}
		hosts[node.about.Info.Host] = true
		for _, rank := range node.ranks {
			if ranks[rank] {
				return nil
			}
			ranks[rank] = true
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// hasSnapshot reports whether one of these files below a folder is a snapshot, or many are that may be: logs beside the machines'
// folders are none.
func hasSnapshot(path string, names []string) bool {
	if len(names) > maxLogs {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		file, err := openFile(filepath.Join(path, name))
		if err != nil {
			return false
		}
		defer file.close()
		return file.format != nil
	})
}

// openNode reads one rank, or with NoRank the lowest, of the machine that has it.
func (f *Folder) openNode(rank int) (*snapshot.Run, error) {
	if rank == snapshot.NoRank {
		rank = f.ranks[0]
	}
	at := slices.IndexFunc(f.nodes, func(node *Folder) bool { return slices.Contains(node.ranks, rank) })
	if at < 0 {
		return nil, notThere(fmt.Sprintf("%s: no snapshots of rank %d", f.path, rank), fmt.Sprintf("there are ranks %v", f.ranks))
	}
	run, err := f.nodes[at].OpenRank(rank)
	if err != nil {
		return nil, err
	}
	run.Path, run.Ranks = f.path, slices.Clone(f.ranks)
	parts := make([]string, len(f.nodes))
	for i, node := range f.nodes {
		parts[i] = fmt.Sprintf("%s of %s has ranks %s", filepath.Base(node.path), node.about.Info.Host, strings.Trim(fmt.Sprint(node.ranks), "[]"))
	}
	run.Notes = append(run.Notes, fmt.Sprintf("a run of %d machines: %s", len(parts), some(parts)))
	return run, nil
}
