package converted

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

type mark struct {
	Step        *int64     `json:"step"`
	StepCounted bool       `json:"step_counted"`
	Epoch       *int64     `json:"epoch"`
	Phase       string     `json:"phase"`
	Rank        *int       `json:"rank"`
	Producer    string     `json:"producer"`
	Batch       int64      `json:"batch_elements"`
	Sequence    int64      `json:"sequence_length"`
	Time        *time.Time `json:"time"`
}

type device struct {
	Kind   snapshot.DeviceKind `json:"kind"`
	Index  int                 `json:"index"`
	Name   string              `json:"name"`
	Limit  *snapshot.Bytes     `json:"limit_bytes"`
	Meters struct {
		Requested snapshot.Bytes  `json:"requested_bytes"`
		Allocated snapshot.Bytes  `json:"allocated_bytes"`
		Active    *snapshot.Bytes `json:"active_bytes"`
		Reserved  *snapshot.Bytes `json:"reserved_bytes"`
		Driver    *snapshot.Bytes `json:"driver_bytes"`
	} `json:"meters"`
}

type stack struct {
	Frames []struct {
		Function string `json:"function"`
		File     string `json:"file"`
		Line     *int   `json:"line"`
	} `json:"frames"`
}

type segment struct {
	Device     int            `json:"device"`
	Address    string         `json:"address"`
	Size       snapshot.Bytes `json:"bytes"`
	Stream     uint64         `json:"stream"`
	Pool       string         `json:"pool"`
	Private    string         `json:"private_pool"`
	Expandable bool           `json:"expandable"`
	Stack      int            `json:"stack"`
	Blocks     []block        `json:"blocks"`
}

type block struct {
	Address    string         `json:"address"`
	Size       snapshot.Bytes `json:"bytes"`
	Requested  snapshot.Bytes `json:"requested_bytes"`
	State      string         `json:"state"`
	Stack      int            `json:"stack"`
	Count      *int64         `json:"blocks"`
	BirthStep  *int64         `json:"birth_step"`
	BirthTime  *int64         `json:"birth_time_us"`
	BirthEvent *int64         `json:"birth_event"`
	Owners     owners         `json:"owners"` // nil if unknown
	Category   string         `json:"category"`
}

// owners are the names of the classes that hold a block. There are few, so their text is short.
type owners []string

// UnmarshalJSON refuses a list that is too long before it makes it.
func (o *owners) UnmarshalJSON(text []byte) error {
	const longest = 1 << 10
	if len(text) > longest {
		return fmt.Errorf("a block is held by %d bytes of names", len(text))
	}
	return json.Unmarshal(text, (*[]string)(o))
}

type holder struct {
	Stack   int    `json:"stack"`
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	Items   int    `json:"items"`
	Counted int64  `json:"items_at_step"`
	Bound   int    `json:"bound"`
}

type history struct {
	Events    int64      `json:"events"`
	First     *time.Time `json:"first"`
	Last      *time.Time `json:"last"`
	LostFrees int64      `json:"lost_frees"`
	Process   string     `json:"process"`
}
