package torch

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

const (
	// maxDevice is the highest device index that is believed.
	maxDevice = 1023
	// maxCommunicators is the most communicators that are believed.
	maxCommunicators = 1 << 20
	// maxBytes is the largest size that is believed, 1 PiB, and maxTotal the
	// largest sum, 1 EiB: everything that is added up stays within 64 bits.
	maxBytes = 1 << 50
	maxTotal = 1 << 60
	// maxRows is what a row's number can count, and fewRows how many any file may
	// have; a larger one may have one for every rowBytes. PyTorch writes some 75.
	maxRows  = 1<<31 - 1
	fewRows  = 1 << 20
	rowBytes = 56
	// fewSegments and segmentBytes are the same for segments, which take more memory.
	// The shortest that say what a segment is take 80 bytes with their block, but a
	// segment has 2 MiB of a GPU's memory.
	fewSegments  = 128 << 10
	segmentBytes = 256
	// fewTables is what the tables of any file may take in bytes; those of a larger
	// one may take its size more.
	fewTables = 64 << 20
)

// builder turns the objects of a file into a snapshot.
type builder struct {
	m          *machine
	begun      [numRoles]bool
	segments   []rawSegment
	blocks     snapshot.Blocks // Stack holds ids of lists in symbols
	mostRows   int
	mostSegs   int
	mostTables int64 // bytes
	mostMemo   int   // entries
	pinned     bool  // the CPU's segments are of pinned memory
	stepped    bool  // some block has a step
	total      int64 // of the sizes of blocks and segments
	record     record
	moments    moments
	lives      map[int]*lives        // by device; nil if no timeline is requested
	events     map[int]*deviceEvents // by device; nil if no records are requested
	settings   *snapshot.AllocatorConf
	born       []tenancy // for each row, if it shows a moment
	step       int64     // of the header
	rank       int
	driver     []snapshot.Bytes // by GPU
	limit      []snapshot.Bytes
	peak       []snapshot.Bytes
	retries    []snapshot.Bytes // a count each
	ooms       []snapshot.Bytes // a count each
	nccl       []snapshot.Bytes
	groups     int64               // communicators of NCCL
	kind       snapshot.DeviceKind // of the GPUs
	light      bool                // the record of allocations was left out
	skips      bool                // whether the record has no events for requested frees
	whole      bool                // the driver's figures are those of all processes
	agent      bool                // the recorder's own snapshot of the process follows PyTorch's

	// Irregularities, for the notes.
	after   int64          // the offset of more data after the snapshot; 0 for none
	another bool           // … with one more
	odd     int            // values of an unexpected type
	states  int            // blocks in an unknown state
	classes map[string]int // calls of foreign classes, at most maxClasses names
	broken  brokenRules
}

const maxClasses = 16

// allow bounds rows and tables by the size of the file, compressed as it may be, and
// what a caller trusts it to unpack to.
func (b *builder) allow(size, unpacked int64) {
	b.mostRows = int(min(maxRows, fewRows+max(size, unpacked)/rowBytes))
	b.mostSegs = int(min(maxRows, fewSegments+max(size, unpacked)/segmentBytes))
	b.mostTables = fewTables + min(max(size, unpacked), 1<<50)
	b.mostMemo = fewMemo + int(min(max(size, unpacked), 1<<50))
}

func (b *builder) init(m *machine) {
	b.m = m
	b.classes = make(map[string]int)
	b.record.init()
	b.moments.of = make(map[int]*moment)
	b.step, b.rank, b.kind = snapshot.NoStep, snapshot.NoRank, snapshot.CUDA
}

func (b *builder) rows() int { return len(b.blocks.Size) }

// begin is called when a container of a role opens. There is one of each of
// the top-level lists: a file of two snapshots is not read as their union.
func (b *builder) begin(r role) error {
	switch r {
	case segments, traces, annotations, hostSegments, hostTraces, header, settings:
		if b.begun[r] {
			err := b.m.fail("a second time %s", r)
			err.Hint = "memdiag reads one snapshot a file; write them to files of their own"
			return err
		}
		b.begun[r] = true
	}
	return nil
}

// foreign counts a call of a class or function that is not made.
func (b *builder) foreign(name string) {
	if _, ok := b.classes[name]; ok || len(b.classes) < maxClasses {
		b.classes[name]++
	}
}

// value takes o as the value of a key of d; roles and places are checked.
func (b *builder) value(d, o *object) {
	switch o.role {
	case blocks:
		d.put(sgEnd, uint64(b.rows()))
		d.put(sgBlocks, 1)
	case tenants:
		b.tenant(d, o)
	case settings:
		b.configured(o)
	case header:
		if o.has(hdStep) {
			b.step = max(snapshot.NoStep, int64(o.values[hdStep]))
		}
		if rank := int64(o.values[hdRank]); o.has(hdRank) && rank >= 0 && rank < 1<<31 {
			b.rank = int(rank)
		}
		for _, list := range []struct {
			key uint8
			to  *[]snapshot.Bytes
		}{{hdDriver, &b.driver}, {hdLimit, &b.limit}, {hdPeak, &b.peak}, {hdRetries, &b.retries}, {hdOOMs, &b.ooms}, {hdNCCL, &b.nccl}} {
			if o.has(list.key) {
				*list.to = figures(b.m.symbols.strings[o.values[list.key]])
			}
		}
		if o.has(hdAccelerator) {
			b.kind = acceleratorNamed(b.m.symbols.strings[o.values[hdAccelerator]])
		}
		if n := int64(o.values[hdCommunicators]); o.has(hdCommunicators) && n > 0 && n <= maxCommunicators {
			b.groups = n
		}
		b.light = o.has(hdLight) && o.values[hdLight] != 0
		b.skips = o.has(hdSkips) && o.values[hdSkips] != 0
		b.agent = o.has(hdAgent) && o.values[hdAgent] != 0
		b.whole = o.has(hdDriverWhole) && o.values[hdDriverWhole] != 0
	}
}

// configured takes o as the allocator's settings.
func (b *builder) configured(o *object) {
	conf := snapshot.AllocatorConf{Expandable: o.values[stExpandable] != 0}
	if o.has(stConf) {
		conf.Text = b.m.symbols.strings[o.values[stConf]]
	}
	if size := o.values[stMaxSplit]; o.has(stMaxSplit) && size <= maxBytes {
		conf.MaxSplit = snapshot.Bytes(size)
	}
	b.settings = &conf
}

// acceleratorNamed is the kind of device with PyTorch's name; CUDA if the name is unknown.
func acceleratorNamed(name string) snapshot.DeviceKind {
	if k := snapshot.DeviceKind(name); acceleratorName.MatchString(name) && !k.InProcess() && k != snapshot.Process && k != snapshot.SharedMemory {
		return k
	}
	return snapshot.CUDA
}

var acceleratorName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,15}$`)

// figures parses a list of bytes or of counts, one per GPU; an invalid number is unknown.
func figures(text string) []snapshot.Bytes {
	parts := strings.SplitN(text, ",", maxDevice+2)
	list := make([]snapshot.Bytes, min(len(parts), maxDevice+1))
	for i := range list {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || n < 0 || n > maxBytes {
			n = int64(snapshot.Unknown)
		}
		list[i] = snapshot.Bytes(n)
	}
	return list
}

// figure is a GPU's.
func figure(list []snapshot.Bytes, gpu int) snapshot.Bytes {
	if gpu < len(list) {
		return list[gpu]
	}
	return snapshot.Unknown
}

// tenant takes o as the current tenant of block d.
func (b *builder) tenant(d, o *object) {
	d.set &^= 1<<blReal | 1<<blTenantStack // of a history before, under the same key
	d.values[blTenantStack] = 0
	if o.has(tnReal) {
		d.put(blReal, o.values[tnReal])
	}
	if o.has(tnStack) {
		d.put(blTenantStack, o.values[tnStack])
	}
}

// item takes o as the newest item of l; roles and places are checked.
func (b *builder) item(l, o *object) error {
	switch o.role {
	case segment:
		if l.role == hostSegments {
			return b.addHost(o)
		}
		return b.addSegment(o)
	case block:
		return b.addBlock(o)
	case tenant:
		if l.items == 1 { // the current tenant; the rest are older
			l.set, l.values = o.set, o.values
		}
	case trace:
		if int(o.values[0]) != l.items-1 {
			return b.m.fail("a trace lies in an unexpected place")
		}
		b.record.devices = l.items
	case entry:
		if b.record.events%eventsBetween == 0 {
			b.weigh()
		}
		if l.role != trace {
			b.record.add(b.record.host, o)
			return nil
		}
		return b.addDeviceEvent(int(l.values[0]), o)
	case annotation:
		b.record.annotate(o, b.m.symbols.strings)
	}
	return nil
}

func (b *builder) size(o *object, at uint8, what string) (int64, error) {
	v := o.values[at]
	if o.has(at) && v > maxBytes {
		return 0, b.m.fail("%s of %s bytes", what, written(v))
	}
	return int64(v), nil
}

// written is an int as the file most likely has it: one of 64 bits may be meant signed or
// not, and only a small one is taken for negative.
func written(v uint64) string {
	if -v <= maxBytes {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}

// add counts a size towards the total that is believed.
func (b *builder) add(size int64) error {
	if b.total += size; b.total > maxTotal {
		return b.m.fail("the blocks add up to more than %s", snapshot.Bytes(maxTotal))
	}
	return nil
}

func (b *builder) addBlock(o *object) error {
	if !o.has(blSize) {
		return b.m.fail("a block without a size")
	}
	size, err := b.size(o, blSize, "a block")
	if err != nil {
		return err
	}
	state := b.stateOf(o)
	requested, stack := size, uint32(0)
	switch {
	case state == snapshot.Free:
		requested = 0 // what the file says is of the last tenant
	case o.has(blReal):
		requested = b.request(o.values[blReal], size)
	case o.has(blRequested):
		requested = b.request(o.values[blRequested], size)
	}
	if state != snapshot.Free {
		// No place that is not set holds anything but 0, the empty list.
		stack = uint32(cmp.Or(o.values[blStack], o.values[blTenantStack]))
	}
	step := snapshot.NoStep
	if o.has(blStep) && int64(o.values[blStep]) >= 0 {
		step, b.stepped = int64(o.values[blStep]), true
	}
	return b.row(o.values[blAddress], size, requested, state, stack, step)
}

// request is what was asked for, of a block of a size. No allocator gives less: more is not believed.
func (b *builder) request(asked uint64, size int64) int64 {
	if asked > uint64(size) {
		b.broken.requests++
		return size
	}
	return int64(asked)
}

func (b *builder) row(address uint64, size, requested int64, state snapshot.State, stack uint32, step int64) error {
	if b.rows() >= b.mostRows {
		err := b.m.fail("more than %d blocks, which take more memory than a file of its size may ask for", b.mostRows)
		err.Hint = liftHint
		return err
	}
	if err := b.add(size + requested); err != nil {
		return err
	}
	c := &b.blocks
	if n := b.rows(); n == cap(c.Size) {
		b.grow(max(256, min(n, 1<<16)))
	}
	c.Address = append(c.Address, address)
	c.Size = append(c.Size, snapshot.Bytes(size))
	c.Requested = append(c.Requested, snapshot.Bytes(requested))
	c.State = append(c.State, state)
	c.Stack = append(c.Stack, snapshot.StackID(stack))
	c.BirthStep = append(c.BirthStep, step)
	return nil
}

// grow makes room for n more rows. At first that doubles them: most files have a
// few thousand, for which append would copy the columns ten times.
func (b *builder) grow(n int) {
	c := &b.blocks
	c.Address = slices.Grow(c.Address, n)
	c.Size = slices.Grow(c.Size, n)
	c.Requested = slices.Grow(c.Requested, n)
	c.State = slices.Grow(c.State, n)
	c.Stack = slices.Grow(c.Stack, n)
	c.BirthStep = slices.Grow(c.BirthStep, n)
	if b.moments.any() {
		b.born = slices.Grow(b.born, n)
	}
}

func (b *builder) stateOf(o *object) snapshot.State {
	id := keyword(o.values[blState])
	switch {
	case o.has(blState) && id == kwInactive:
		return snapshot.Free
	case o.has(blState) && id == kwLive:
		return snapshot.Live
	case o.has(blState) && (id == kwPendingFree || id == kwAwaitingFree):
		return snapshot.Pending
	}
	b.states++
	if o.has(blState) && strings.HasPrefix(b.m.symbols.strings[id], "active") {
		return snapshot.Live
	}
	return snapshot.Free
}
