//go:build !linux

package record

import (
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// sharedFiles is empty: shared memory files are unknown on this system.
type sharedFiles struct{}

func watchShared(string, time.Time) sharedFiles { return sharedFiles{} }

func (*sharedFiles) count([]process) segments { return segments{n: -1, size: snapshot.Unknown} }
