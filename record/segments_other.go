//go:build !linux

package record

import (
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func countSegments(string, []process, time.Time) (int64, snapshot.Bytes) {
	return -1, snapshot.Unknown
}
