package replay

// collect gives back large blocks that have not been used for long, as garbage_collection_threshold asks for.
func (a *allocator) collect() {
	threshold := int64(a.Collect * float64(a.limit))
	if threshold == 0 || a.reserved <= threshold {
		return
	}
	a.collected = true
	var cached []row
	age := int64(0)
	for key, p := range a.each() {
		for _, f := range p.free {
			if !key.small && key.private == "" && a.blocks[f.row].whole() {
				cached = append(cached, f.row)
				age += a.age(f.row)
			}
		}
	}
	target := a.reserved - threshold
	for freed := true; freed && target > 0 && len(cached) > 0; {
		freed = false
		mean := age / int64(len(cached))
		kept := cached[:0]
		for _, at := range cached {
			if a.age(at) < mean {
				kept = append(kept, at)
				continue
			}
			freed = true
			age -= a.age(at)
			target -= a.blocks[at].size
			a.release(at)
		}
		cached = kept
	}
}

// age is how often its pool was asked since a block became free.
func (a *allocator) age(at row) int64 { return a.blocks[at].pool.asked - a.blocks[at].since }

// each are the pools in the order in which they were made.
func (a *allocator) each() func(func(poolKey, *pool) bool) {
	return func(yield func(poolKey, *pool) bool) {
		for i, p := range a.order {
			if !yield(a.keys[i], p) {
				return
			}
		}
	}
}
