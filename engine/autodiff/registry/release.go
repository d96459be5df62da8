package registry

import "maps"

// Release frees all that the registry holds: what nodes saved, and their records.
// Nothing can be differentiated through them any more. No Backward may be under
// way.
func (r *Registry) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[*token]bool)
	for g := range r.graphs {
		maps.Copy(all, g.nodes)
	}
	r.bury(all, true)
	// Rules before RulesIndex leave entries whose nodes are gone.
	for first, members := range r.index {
		for _, entry := range members {
			free(entry)
		}
		delete(r.index, first)
	}
}
