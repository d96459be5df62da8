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
// rank is in two of them; or none has a rank, and all are of the same command. Clocks are not compared. It is nil of other folders.
func (o Opener) nodesBelow(path string, list listing) []*Folder {
	if len(list.runs) < 2 || len(list.runs) > maxNodes || hasSnapshot(path, list.files) {
		return nil
	}
	var nodes []*Folder
	hosts, ranks := make(map[string]bool), make(map[int]bool)
	for _, name := range list.runs {
		node, err := o.LookThrough(filepath.Join(path, name))
		if err != nil || node.about.Info.Host == "" || hosts[node.about.Info.Host] {
			return nil
		}
		if first := append(nodes, node)[0]; len(node.ranks) == 0 && (len(first.ranks) > 0 || node.ofRank[snapshot.NoRank] == nil || !sameCommand(first, node)) ||
			len(node.ranks) > 0 && len(first.ranks) == 0 {
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

// sameCommand reports whether two runs are known to belong to one command.
func sameCommand(a, b *Folder) bool {
	return len(a.about.Info.Command) > 0 && slices.Equal(a.about.Info.Command, b.about.Info.Command)
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
	at, own := slices.IndexFunc(f.nodes, func(node *Folder) bool { return slices.Contains(node.ranks, rank) }), rank
	if f.unranked {
		at, own = slices.Index(f.ranks, rank), snapshot.NoRank
	}
	if at < 0 {
		return nil, notThere(fmt.Sprintf("%s: no snapshots of rank %d", f.path, rank), fmt.Sprintf("there are ranks %v", f.ranks))
	}
	run, err := f.nodes[at].OpenRank(own)
	if err != nil {
		return nil, err
	}
	for _, s := range run.Snapshots {
		s.Rank = rank
	}
	run.Path, run.Ranks, run.Machine = f.path, slices.Clone(f.ranks), f.nodes[at].about.Info.Host
	parts := make([]string, len(f.nodes))
	for i, node := range f.nodes {
		name := strings.TrimPrefix(node.path, f.path+string(filepath.Separator))
		if f.unranked {
			parts[i] = fmt.Sprintf("%s of %s is taken as rank %d", name, node.about.Info.Host, i)
			continue
		}
		parts[i] = fmt.Sprintf("%s of %s has ranks %s", name, node.about.Info.Host, strings.Trim(fmt.Sprint(node.ranks), "[]"))
	}
	run.Notes = append(run.Notes, fmt.Sprintf("a run of %d machines: %s", len(parts), some(parts)))
	return run, nil
}
