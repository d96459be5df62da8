package replay

// expand maps memory of an expandable segment for a block, which is in no list; none where the limit forbids it.
func (a *allocator) expand(p *pool, size int64) row {
	if size > rangeSize {
		return none
	}
	at := a.room(p, size)
	for !a.blocks[at].mapped || a.blocks[at].size < size {
		part := at
		missing := size
		if a.blocks[at].mapped {
			part, missing = a.blocks[at].next, size-a.blocks[at].size
		}
		if at = a.mapPages(part, min(missing, a.blocks[part].size)); at == none {
			return none
		}
	}
	a.unlist(at)
	return at
}

// room is the first range of free and unmapped blocks that a block fits into; a new one where there is none.
func (a *allocator) room(p *pool, size int64) row {
	for _, u := range p.unmapped {
		at := u.row
		if prev := a.blocks[at].prev; prev != none && !a.blocks[prev].taken {
			at = prev
		}
		left := size
		for next := at; next != none && !a.blocks[next].taken; next = a.blocks[next].next {
			if left -= a.blocks[next].size; left <= 0 {
				return at
			}
		}
	}
	base := a.address(0)
	at := a.newRow(block{address: base, base: base, size: rangeSize, prev: none, next: none, pool: p})
	a.list(at)
	return at
}

// mapPages gives memory to the beginning of an unmapped block, in whole pages, and returns the free block that it becomes; none where the
// limit forbids it.
func (a *allocator) mapPages(at row, size int64) row {
	page := int64(a.blocks[at].pool.page())
	size = min((size+page-1)/page*page, a.blocks[at].size)
	if a.reserved+size > a.limit {
		return none
	}
	a.unlist(at)
	if a.blocks[at].size > size {
		a.split(at, size) // the rest is unmapped, too
	}
	a.blocks[at].mapped = true
	a.reserved += size
	a.calls++
	at = a.join(at)
	a.list(at)
	return at
}

// unmap gives back the whole pages of a free block of an expandable segment.
func (a *allocator) unmap(at row) {
	b := &a.blocks[at]
	from, to := b.pages()
	if to <= from {
		return
	}
	a.unlist(at)
	if before := int64(from - b.address); before > 0 {
		a.split(at, before)
		rest := a.blocks[at].next
		a.list(at)
		a.unlist(rest)
		at = rest
	}
	if size := int64(to - from); a.blocks[at].size > size {
		a.split(at, size)
	}
	a.blocks[at].mapped = false
	a.reserved -= int64(to - from)
	a.calls++
	if at = a.join(at); a.isSplit(at) {
		a.list(at)
	} else {
		a.spare = append(a.spare, at)
	}
}
