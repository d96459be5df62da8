//go:build !unix

package record

import "time"

// processorTime is always 0: this system has no looks to measure.
func processorTime() time.Duration { return 0 }
