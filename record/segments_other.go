//go:build !linux

package record

import (
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func segments(string, time.Time, bool, func(int) bool) (int64, snapshot.Bytes) {
	return -1, snapshot.Unknown
}
