// Package native reads and writes memdiag's own files: a snapshot as compressed
// columns, and the series log of a run as records that survive a killed writer.
// docs/format.md describes both, byte by byte.
package native

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
)

// Ending is how the names of our files end.
const Ending = ".memdiag"

// The first byte is no ASCII, so that no text file begins so; the line feed
// shows a transfer that rewrites line ends.
const (
	snapshotMagic = "\x89MDSNAP\n"
	seriesMagic   = "\x89MDSERI\n"
)

// A file of another major version is refused; of a later minor version, it is
// read without the sections or records that are not known here.
const (
	majorVersion = 1
	minorVersion = 0
)

const (
	fileHeaderSize    = 16
	sectionHeaderSize = 24
	checksumSize      = 8
)

// What a section may unpack to: a hostile file must not cost more memory than
// this bound says. Writers that would break it store the section unpacked.
const (
	maxRatio = 16
	maxFree  = 4 << 20
)

func unpackLimit(stored uint64) uint64 {
	if stored > 1<<40 {
		return 1 << 50 // more than any file that can be read; the product stays in range
	}
	return maxFree + maxRatio*stored
}

// maxMemory is how much memory a snapshot of size bytes may take, unpacked and as a model, unless a caller allows more: 2^20 blocks
// take two thirds of the fixed part. A block takes 33 to 58 bytes, and if it is not packed at least 6 to 10 bytes of the file; real
// ones take 12.
func maxMemory(size int64) int64 {
	size = min(size, 1<<50)
	return max(100<<20+2*size, 11*size/2)
}

// maxPackedBlocks is how many blocks a file may have for them to be packed. More would ask
// for more memory than a reader allows a small file, which may be made to hurt.
const maxPackedBlocks = 1 << 20

// What an element takes of memory, in bytes. Frames are counted with what it takes to find
// them again; stacks, segments and notes with what comparing and showing make of them.
const (
	deviceMemory  = 88
	textMemory    = 16
	frameMemory   = 128
	stackMemory   = 512
	segmentMemory = 128
	blockMemory   = 33
	holderMemory  = 48
	noteMemory    = 64
)

// maxSections is many times what a later version may have.
const maxSections = 1000

type kind [4]byte

// The kinds of section of a snapshot.
var (
	kindMeta       = kind{'M', 'E', 'T', 'A'}
	kindCounted    = kind{'S', 'C', 'N', 'T'}
	kindDevices    = kind{'D', 'E', 'V', 'S'}
	kindStacks     = kind{'S', 'T', 'K', 'S'}
	kindSegments   = kind{'S', 'E', 'G', 'S'}
	kindBlocks     = kind{'B', 'L', 'K', 'S'}
	kindBirthStep  = kind{'B', 'S', 'T', 'P'}
	kindBirthTime  = kind{'B', 'T', 'I', 'M'}
	kindBirthEvent = kind{'B', 'E', 'V', 'T'}
	kindOwners     = kind{'O', 'W', 'N', 'R'}
	kindCategory   = kind{'C', 'T', 'G', 'Y'}
	kindCounts     = kind{'C', 'N', 'T', 'S'}
	kindHolders    = kind{'H', 'O', 'L', 'D'}
	kindHistory    = kind{'H', 'I', 'S', 'T'}
	kindProcess    = kind{'P', 'R', 'O', 'C'}
	kindSampled    = kind{'S', 'M', 'P', 'L'}
	kindNotes      = kind{'N', 'O', 'T', 'E'}
	kindEnd        = kind{'E', 'N', 'D', '.'}
)

type section struct {
	kind     kind
	required bool
}

// known lists the sections before the end in the order that they must have, so
// that each comes after those that it refers to.
var known = []section{
	{kindMeta, true},
	{kindCounted, false},
	{kindDevices, true},
	{kindStacks, true},
	{kindSegments, true},
	{kindBlocks, true},
	{kindBirthStep, false},
	{kindBirthTime, false},
	{kindBirthEvent, false},
	{kindOwners, false},
	{kindCategory, false},
	{kindCounts, false},
	{kindHolders, true},
	{kindHistory, true},
	{kindProcess, false},
	{kindSampled, false},
	{kindNotes, true},
}

func (k kind) String() string { return fmt.Sprintf("%q", string(k[:])) }

type codec uint32

const (
	plain codec = 0
	zstd1 codec = 1
)

// Detect says whether a file that begins with head is a snapshot of ours.
func Detect(head []byte) bool { return hasPrefix(head, snapshotMagic) }

// DetectSeries says whether a file that begins with head is a series log.
func DetectSeries(head []byte) bool { return hasPrefix(head, seriesMagic) }

func hasPrefix(head []byte, magic string) bool {
	return len(head) >= len(magic) && string(head[:len(magic)]) == magic
}

// fileHeader is the magic, the version, and 32 bits of their hash, so that a
// damaged version is not taken for a file from the future.
func fileHeader(magic string) []byte {
	b := append(make([]byte, 0, fileHeaderSize), magic...)
	b = binary.LittleEndian.AppendUint16(b, majorVersion)
	b = binary.LittleEndian.AppendUint16(b, minorVersion)
	return binary.LittleEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
}

// readFileHeader checks the header and returns the minor version.
func readFileHeader(name string, r io.ReaderAt, size int64, magic, what string) (minor uint16, err error) {
	if size < fileHeaderSize {
		return 0, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("%d bytes are too short for a %s", size, what)}
	}
	b := make([]byte, fileHeaderSize)
	if err := readAt(name, r, b, 0); err != nil {
		return 0, err
	}
	if !hasPrefix(b, magic) {
		return 0, &snapshot.FormatError{File: name, Reason: "not a " + what + " of memdiag"}
	}
	if binary.LittleEndian.Uint32(b[12:]) != uint32(xxhash.Sum64(b[:12])) {
		return 0, &snapshot.FormatError{File: name, Offset: 8, Reason: "the header does not match its checksum: the file is damaged"}
	}
	if major := binary.LittleEndian.Uint16(b[8:]); major != majorVersion {
		return 0, &snapshot.FormatError{
			File: name, Offset: 8,
			Reason: fmt.Sprintf("format version %d; this memdiag reads version %d", major, majorVersion),
			Hint:   "read it with the memdiag that wrote it, or with a newer one",
		}
	}
	return binary.LittleEndian.Uint16(b[10:]), nil
}

func readAt(name string, r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &snapshot.FormatError{File: name, Offset: offset + int64(n), Reason: err.Error(), Err: err}
}

// Scalars. Integers are varints, signed ones in zigzag, as package
// encoding/binary has them.

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendTime writes 0 for the zero time, else 1 and the microseconds since
// base, itself in Unix microseconds.
func appendTime(b []byte, t time.Time, base int64) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), t.UnixMicro()-base)
}
