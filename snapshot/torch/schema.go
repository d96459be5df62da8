package torch

// A keyword is a string that means something in a snapshot; its number is its
// id in symbols, so that telling keys apart is comparing integers.
type keyword = uint32

const (
	kwSegments keyword = iota
	kwTraces
	kwAnnotations
	kwHostSegments
	kwHostTraces
	kwHeader
	kwDevice
	kwAddress
	kwTotalSize
	kwAllocatedSize
	kwActiveSize
	kwRequestedSize
	kwStream
	kwSegmentType
	kwPoolID
	kwExpandable
	kwFrames
	kwBlocks
	kwSize
	kwState
	kwHistory
	kwAddr
	kwRealSize
	kwName
	kwFilename
	kwLine
	kwAction
	kwTime
	kwDeviceFree
	kwStage
	kwStep
	kwRank
	kwDriver
	kwDriverWhole
	kwLimit
	kwAgent
	kwPeak
	kwRetries
	kwSettings
	kwConf
	kwMaxSplit
	kwUsesExpandable
	kwOOMs
	kwAccelerator
	kwLight
	kwSkips
	kwCommunicators
	kwNCCL
	kwMetadata

	kwAlloc
	kwFreeRequested
	kwFreeCompleted
	kwOOM
	kwSegmentAlloc
	kwSegmentFree
	kwSegmentMap
	kwSegmentUnmap
	kwLive
	kwPendingFree
	kwAwaitingFree
	kwInactive
	kwSmall
	kwLarge
	kwCPU
	kwEnd
	kwEmpty

	numKeywords
)

var keywords = [numKeywords]string{
	"segments", "device_traces", "external_annotations", "host_segments", "host_traces", "memdiag",
	"device", "address", "total_size", "allocated_size", "active_size", "requested_size",
	"stream", "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks",
	"size", "state", "history", "addr", "real_size", "name", "filename", "line",
	"action", "time_us", "device_free", "stage", "step", "rank", "driver", "driver_whole", "limit", "agent", "peak", "retries",
	"allocator_settings", "PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "expandable_segments",
	"ooms", "accelerator", "light", "skips", "communicators", "nccl", "user_metadata",
	"alloc", "free_requested", "free_completed", "oom", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
	"active_allocated", "active_pending_free", "active_awaiting_free", "inactive",
	"small", "large", "cpu", "END", "",
}

// role is what a container is in the snapshot, known from its place as soon as
// it opens; so its items can be reduced as they come.
type role uint8

const (
	// anything: a frame if it is a dict with a name or a filename, a stack if it is a list of frames, otherwise ignored. Frames are
	// recognised everywhere, because an ignored part may have the first occurrence of a frame that is referred to later.
	anything     role = iota
	top               // dict: segments, device_traces, …
	wrapper           // dict: an unknown value in top, which may be the real one
	segments          // list of segment
	segment           // dict
	blocks            // list of block
	block             // dict
	tenants           // list of tenant: "history", before 2.1
	tenant            // dict
	poolID            // list of two ints (a tuple in a pickle)
	traces            // list of trace, one a device
	trace             // list of entry
	entry             // dict
	annotations       // list of annotation
	annotation        // dict
	hostSegments      // list of segment: pinned memory of the host, since 2026
	hostTraces        // list of entry, or of hostTrace
	hostTrace         // list of entry
	header            // dict: what memdiag's own recorder adds
	settings          // dict: allocator_settings

	numRoles
)

var roleNames = [numRoles]string{
	"a value", "the snapshot", "a wrapper", "the list of segments", "a segment", "the list of blocks", "a block",
	"a history", "a past tenant", "a pool id", "the list of traces", "a trace", "a trace entry",
	"the list of annotations", "an annotation", "the list of host segments", "the list of host traces", "a host trace",
	"memdiag's header", "the allocator's settings",
}

func (r role) String() string { return roleNames[r] }

// isHost reports whether a list is of pinned memory. Their shape is known from PyTorch's
// sources only, so that what they hold otherwise is passed over, not refused.
func (r role) isHost() bool { return r == hostSegments || r == hostTraces || r == hostTrace }

// itemRole is the role of a container found in a list.
func itemRole(list role, isList bool) role {
	switch {
	case (list == segments || list == hostSegments) && !isList:
		return segment
	case list == blocks && !isList:
		return block
	case list == tenants && !isList:
		return tenant
	case list == traces && isList:
		return trace
	case (list == trace || list == hostTraces || list == hostTrace) && !isList:
		return entry
	case list == hostTraces && isList:
		return hostTrace
	case list == annotations && !isList:
		return annotation
	}
	return anything
}

// valueRole is the role of a container found in a dict under a key.
func valueRole(dict role, key keyword, isList bool) role {
	switch {
	case (dict == top || dict == wrapper) && isList && key == kwSegments:
		return segments
	case (dict == top || dict == wrapper) && isList && key == kwTraces:
		return traces
	case (dict == top || dict == wrapper) && isList && key == kwAnnotations:
		return annotations
	case (dict == top || dict == wrapper) && isList && key == kwHostSegments:
		return hostSegments
	case (dict == top || dict == wrapper) && isList && key == kwHostTraces:
		return hostTraces
	case dict == top && !isList && key == kwHeader:
		return header
	case (dict == top || dict == wrapper) && !isList && key == kwSettings:
		return settings
	case dict == top && !isList && key >= numKeywords:
		return wrapper
	case dict == segment && isList && key == kwBlocks:
		return blocks
	case dict == segment && isList && key == kwPoolID:
		return poolID
	case dict == block && isList && key == kwHistory:
		return tenants
	}
	return anything
}

// want is the type that a field must have; a value of another type is passed
// over, except a list's, which must not be lost.
type want uint8

const (
	wantNothing want = iota
	wantInt
	wantString
	wantBool
	wantStack
	wantPair
	wantList
	wantFrames // a stack that may be anything else
)

// field is a place in an object's values.
type field struct {
	at   uint8
	want want
}

// Places of the fields, by role.
const (
	frName = iota
	frFile
	frLine
)

const (
	sgDevice = iota
	sgAddress
	sgTotal
	sgAllocated
	sgActive
	sgRequested
	sgStream
	sgType
	sgPool
	sgExpandable
	sgStack
	sgBlocks
	sgFirst // row of its first block
	sgEnd   // row after its last
)

const (
	blAddress = iota
	blSize
	blRequested
	blState
	blStack
	blStep
	blHistory
	blReal        // history[0].real_size
	blTenantStack // history[0].frames
)

const (
	tnReal = iota
	tnStack
)

const (
	enAction = iota
	enAddr
	enSize
	enTime
	enFree
	enStream
	enStack
	enMetadata
)

const (
	anStage = iota
	anName
	anTime
)

const (
	hdStep = iota
	hdRank
	hdDriver        // the driver's figures, one a GPU: "1024,-1,2048"; -1 is unknown
	hdDriverWhole   // 1 if these are for all processes
	hdLimit         // limits on reserved memory, one a GPU
	hdPeak          // the most memory allocated so far, one a GPU
	hdRetries       // how many times allocation was retried, one a GPU
	hdOOMs          // how many times memory was still not found, one a GPU
	hdAccelerator   // PyTorch's name for the GPUs: cuda, xpu …
	hdLight         // 1 if PyTorch's record of allocations was left out, to save time
	hdSkips         // 1 if the record has no events for requested frees
	hdCommunicators // of NCCL, in this process
	hdNCCL          // bytes that it logged, one a GPU
	hdAgent         // 1 if the agent's own snapshot of the process follows PyTorch's
)

const (
	stConf = iota
	stMaxSplit
	stExpandable
)

// fieldRoom is a power of two above the largest index, sgEnd or hdAgent, so a smaller index needs no check.
const fieldRoom = 16

var frameFields = map[keyword]field{kwName: {frName, wantString}, kwFilename: {frFile, wantString}, kwLine: {frLine, wantInt}}

// fieldOf says which field a key's value goes to, in a dict of a role.
var fieldOf = fieldTable(map[role]map[keyword]field{
	anything: frameFields,
	wrapper:  {kwSegments: {0, wantList}, kwTraces: {0, wantList}, kwAnnotations: {0, wantList}},
	top:      {kwSegments: {0, wantList}, kwTraces: {0, wantList}, kwAnnotations: {0, wantList}},
	segment: {
		kwDevice: {sgDevice, wantInt}, kwAddress: {sgAddress, wantInt}, kwTotalSize: {sgTotal, wantInt},
		kwAllocatedSize: {sgAllocated, wantInt}, kwActiveSize: {sgActive, wantInt},
		kwRequestedSize: {sgRequested, wantInt}, kwStream: {sgStream, wantInt}, kwSegmentType: {sgType, wantString},
		kwPoolID: {sgPool, wantPair}, kwExpandable: {sgExpandable, wantBool}, kwFrames: {sgStack, wantStack},
		kwBlocks: {sgBlocks, wantList},
	},
	block: {
		kwAddress: {blAddress, wantInt}, kwSize: {blSize, wantInt}, kwRequestedSize: {blRequested, wantInt},
		kwState: {blState, wantString}, kwFrames: {blStack, wantStack}, kwStep: {blStep, wantInt},
		kwHistory: {blHistory, wantList},
	},
	tenant: {kwRealSize: {tnReal, wantInt}, kwFrames: {tnStack, wantStack}},
	entry: {
		kwAction: {enAction, wantString}, kwAddr: {enAddr, wantInt}, kwSize: {enSize, wantInt},
		kwTime: {enTime, wantInt}, kwDeviceFree: {enFree, wantInt}, kwStream: {enStream, wantInt},
		kwFrames: {enStack, wantFrames}, kwMetadata: {enMetadata, wantString},
	},
	annotation: {kwStage: {anStage, wantString}, kwName: {anName, wantString}, kwTime: {anTime, wantInt}},
	settings:   {kwConf: {stConf, wantString}, kwMaxSplit: {stMaxSplit, wantInt}, kwUsesExpandable: {stExpandable, wantBool}},
	header: {
		kwStep: {hdStep, wantInt}, kwRank: {hdRank, wantInt}, kwDriver: {hdDriver, wantString},
		kwDriverWhole: {hdDriverWhole, wantInt}, kwLimit: {hdLimit, wantString}, kwAgent: {hdAgent, wantInt}, kwPeak: {hdPeak, wantString}, kwRetries: {hdRetries, wantString},
		kwOOMs: {hdOOMs, wantString}, kwAccelerator: {hdAccelerator, wantString}, kwLight: {hdLight, wantInt}, kwSkips: {hdSkips, wantInt},
		kwCommunicators: {hdCommunicators, wantInt}, kwNCCL: {hdNCCL, wantString},
	},
})

func fieldTable(byRole map[role]map[keyword]field) (t [numRoles][numKeywords]field) {
	for r, fields := range byRole {
		for k, f := range fields {
			t[r][k] = f
		}
	}
	return t
}
