package mem

import (
	"os"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// resident reads the second field of statm, in pages.
func resident() snapshot.Bytes {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return snapshot.Unknown
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return snapshot.Unknown
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return snapshot.Unknown
	}
	return snapshot.Bytes(pages * int64(os.Getpagesize()))
}
