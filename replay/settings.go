// Package replay plays the record of a snapshot through a model of PyTorch's caching allocator, under the settings that were
// recorded and under others.
package replay

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Settings are those of PYTORCH_CUDA_ALLOC_CONF that decide where blocks go. The zero value has PyTorch's defaults.
type Settings struct {
	Text       string // as it was given
	MaxSplit   int64  // max_split_size_mb in bytes; 0 for no limit
	Expandable bool   // expandable_segments
	// Divisions are roundup_power2_divisions, of sizes up to 1 MiB, to 2 MiB and so on; 0 and 1 for none.
	Divisions [divisionSizes]int64
	// Collect is garbage_collection_threshold, a share of what the process may have; 0 for none.
	Collect float64
	// Unknown are options that the model has no rule for.
	Unknown []string
}

// divisionSizes is how many intervals of sizes roundup_power2_divisions tells apart: 1 MiB to 32 GiB and more.
const divisionSizes = 16

// without are options that change no block's place.
var without = []string{"pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads", "release_lock_on_cudamalloc", "graph_capture_record_stream_reuse"}

// smallestSplit is what max_split_size_mb must exceed in PyTorch, in MiB.
const smallestSplit = 20

// Parse reads the text of PYTORCH_CUDA_ALLOC_CONF.
func Parse(text string) (Settings, error) {
	s := Settings{Text: text}
	for _, option := range options(text) {
		key, value, _ := strings.Cut(option, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		var err error
		switch key {
		case "max_split_size_mb":
			var n int64
			if n, err = strconv.ParseInt(value, 10, 64); err == nil && (n <= smallestSplit || n > 1<<30) {
				err = fmt.Errorf("want more than %d", smallestSplit)
			}
			s.MaxSplit = n << 20
		case "expandable_segments":
			if s.Expandable = value == "True"; !s.Expandable && value != "False" {
				err = fmt.Errorf("want True or False")
			}
		case "roundup_power2_divisions":
			s.Divisions, err = divisions(value)
		case "garbage_collection_threshold":
			if s.Collect, err = strconv.ParseFloat(value, 64); err == nil && !(s.Collect > 0 && s.Collect < 1) {
				err = fmt.Errorf("want a number between 0 and 1")
			}
		default:
			if !slices.Contains(without, key) && option != "backend:native" {
				s.Unknown = append(s.Unknown, key)
			}
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", option, err)
		}
	}
	return s, nil
}

// options cuts a text at its commas, but for those in brackets.
func options(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text + "," {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			if part := strings.TrimSpace(text[from:i]); part != "" {
				out = append(out, part)
			}
			from = i + 1
		}
	}
	if from < len(text) { // a bracket that is not closed
		out = append(out, strings.TrimSpace(text[from:]))
	}
	return out
}

// divisions reads a number, or a list such as [256:1,512:2,>:8] of sizes in MiB.
func divisions(text string) (all [divisionSizes]int64, err error) {
	number := func(text string) (int64, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 0 || n > 1<<20 || n > 0 && bits.OnesCount64(uint64(n)) != 1 {
			return 0, fmt.Errorf("%q is no power of 2", text)
		}
		return n, nil
	}
	list, isList := strings.CutPrefix(text, "[")
	if !isList {
		n, err := number(text)
		for i := range all {
			all[i] = n
		}
		return all, err
	}
	list, closed := strings.CutSuffix(list, "]")
	if !closed {
		return all, fmt.Errorf("the list does not end with ]")
	}
	next := 0
	for i, item := range strings.Split(list, ",") {
		size, value, _ := strings.Cut(item, ":")
		n, err := number(value)
		if err != nil {
			return all, err
		}
		if strings.TrimSpace(size) == ">" {
			for ; next < len(all); next++ {
				all[next] = n
			}
			break
		}
		mib, err := number(size)
		if err != nil {
			return all, err
		}
		at := min(bits.Len64(uint64(mib))-1, divisionSizes-1)
		if at < 0 {
			return all, fmt.Errorf("%q is no size in MiB", size)
		}
		if i == 0 { // the first counts for smaller sizes, too
			for j := range at {
				all[j] = n
			}
		}
		all[at], next = n, at+1
	}
	return all, nil
}

// Recorded are the settings that a snapshot was recorded with. known is false where the file does not say.
func Recorded(s *snapshot.Snapshot) (settings Settings, known bool, err error) {
	conf := s.Allocator
	if conf == nil {
		for _, seg := range s.Segments { // PyTorch before 2.3
			settings.Expandable = settings.Expandable || seg.Expandable
		}
		if settings.Expandable {
			settings.Text = "expandable_segments:True"
		}
		return settings, false, nil
	}
	settings, err = Parse(conf.Text)
	settings.Expandable = settings.Expandable || conf.Expandable
	if settings.MaxSplit == 0 {
		settings.MaxSplit = int64(conf.MaxSplit)
	}
	return settings, true, err
}

// Traps are sentences on options that are known to do harm, or nothing.
func (s Settings) Traps() []string {
	var out []string
	if s.MaxSplit > 0 && s.Expandable {
		out = append(out, "max_split_size_mb together with expandable_segments: from PyTorch 2.12 to 2.14 free memory above the limit is not used again, so that reserved memory may grow in each cycle (pytorch#123548). Set one of the two.")
	}
	if s.Collect > 0 {
		out = append(out, "garbage_collection_threshold acts only after torch.cuda.set_per_process_memory_fraction(), and never on expandable segments.")
	}
	return out
}

// PyTorch's constants (c10/cuda/CUDACachingAllocator.cpp).
const (
	granule       = 512      // every block is a multiple
	smallLimit    = 1 << 20  // the largest block of a small pool
	smallSegment  = 2 << 20  // a segment of a small pool
	largeSegment  = 20 << 20 // a segment of a large pool, up to hugeLimit
	hugeLimit     = 10 << 20 // from here on a segment serves one request …
	hugeRounding  = 2 << 20  // … rounded up to this
	largeRest     = 1 << 20  // what a large block must exceed by to be split
	nonSplitRound = 20 << 20 // by how much a block that may not be split may exceed a request
	smallPage     = smallSegment
	largePage     = largeSegment
)

// round is the size of the block for a request.
func (s *Settings) round(request int64) int64 {
	if request < granule {
		return granule
	}
	at := min(max(bits.Len64(uint64(request))-1-20, 0), divisionSizes-1)
	if n := s.Divisions[at]; n > 1 && request > granule*n {
		if request&(request-1) == 0 {
			return request
		}
		floor := int64(1) << (bits.Len64(uint64(request)) - 1)
		step := floor >> (bits.Len64(uint64(n)) - 1)
		if step == 0 {
			return floor << 1
		}
		return (request + step - 1) / step * step
	}
	return (request + granule - 1) / granule * granule
}

// segmentFor is the size of the segment for a block that found no room.
func segmentFor(size int64) int64 {
	switch {
	case size <= smallLimit:
		return smallSegment
	case size < hugeLimit:
		return largeSegment
	}
	return (size + hugeRounding - 1) / hugeRounding * hugeRounding
}

// Same reports whether two settings put all blocks at the same places.
func (s Settings) Same(other Settings) bool {
	return s.MaxSplit == other.MaxSplit && s.Expandable == other.Expandable && s.Divisions == other.Divisions && s.Collect == other.Collect
}
