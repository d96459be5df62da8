package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// SiteKey identifies a site in a run: a device, and a stack or, for blocks without a stack, the hash of stream, pool and (if single
// blocks are known) size.
type SiteKey struct {
	Device int // index into Snapshot.Devices
	Hash   Hash
}

// Site is all live blocks of one device with one stack.
type Site struct {
	SiteKey
	Stack     StackID
	Label     string // names a site that has no stack; "" otherwise
	Count     int64
	Bytes     Bytes // allocated
	Requested Bytes
	Owners    Owners
	// Rows are the site's rows of Blocks, ascending.
	Rows []int32
}

// unseen distinguishes blocks without a stack, so that growth among them is still visible.
type unseen struct {
	device  int
	pool    Pool
	stream  uint64
	private string
	size    Bytes // Unknown in a total of blocks
}

func (u unseen) label() string {
	label := u.blocks() + fmt.Sprintf(", %s pool, stream %d", u.pool, u.stream)
	if u.private != "" {
		label += ", private pool " + u.private
	}
	return label
}

func (u unseen) blocks() string {
	if u.size == Unknown {
		return "<no stack recorded> blocks"
	}
	return "<no stack recorded> " + u.size.String() + " blocks"
}

// Sites groups the live blocks, largest first, ties by device and hash. It
// walks the blocks twice and costs about 20 ns a block.
func (s *Snapshot) Sites() []Site {
	var sites []Site
	stacks := 1
	if s.Stacks != nil {
		stacks = s.Stacks.Len()
	}
	byStack := make([]int32, len(s.Devices)*stacks) // site + 1
	byUnseen := make(map[unseen]int32)
	of := make([]int32, s.Blocks.Len()) // site + 1 of each live block
	var rowsOf []int                    // by site
	live := 0
	for i, state := range s.Blocks.State {
		if state != Live {
			continue
		}
		seg := &s.Segments[s.Blocks.Segment[i]]
		stack := s.Blocks.Stack[i]
		var at int32
		if stack != NoStack {
			slot := &byStack[seg.Device*stacks+int(stack)]
			if *slot == 0 {
				sites = append(sites, Site{SiteKey: SiteKey{seg.Device, s.Stacks.Hash(stack)}, Stack: stack})
				*slot = int32(len(sites))
			}
			at = *slot
		} else {
			key := unseen{seg.Device, seg.Pool, seg.Stream, seg.Private, s.Blocks.Size[i] / Bytes(s.Blocks.CountOf(i))}
			// In a snapshot of several devices, only one may have totals. A block with an address has its own size.
			if s.Blocks.Count != nil && (s.Devices[seg.Device].Kind.InProcess() || s.Blocks.Address[i] == 0) {
				key.size = Unknown
			}
			if at = byUnseen[key]; at == 0 {
				label := key.label()
				hash := Hash(xxhash.Sum64String(label))
				if key.size == Unknown || s.Devices[seg.Device].Kind == CPU {
					label = key.blocks() // neither totals nor the CPU have pools or streams
				}
				sites = append(sites, Site{SiteKey: SiteKey{seg.Device, hash}, Label: label})
				at = int32(len(sites))
				byUnseen[key] = at
			}
		}
		of[i] = at
		live++
		if int(at) > len(rowsOf) {
			rowsOf = append(rowsOf, 0)
		}
		rowsOf[at-1]++
		site := &sites[at-1]
		site.Count += s.Blocks.CountOf(i)
		site.Bytes += s.Blocks.Size[i]
		site.Requested += s.Blocks.Requested[i]
		if s.Blocks.Owners != nil {
			site.Owners |= s.Blocks.Owners[i]
		}
	}
	rows := make([]int32, live)
	for i := range sites {
		sites[i].Rows, rows = rows[:0:rowsOf[i]], rows[rowsOf[i]:]
	}
	for i, at := range of {
		if at > 0 {
			site := &sites[at-1]
			site.Rows = append(site.Rows, int32(i))
		}
	}
	slices.SortFunc(sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Hash, b.Hash))
	})
	return sites
}
