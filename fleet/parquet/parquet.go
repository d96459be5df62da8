// Package parquet writes and reads flat Parquet files, as far as fleets need them: required columns
// of text, whole numbers, floating-point numbers and times, packed by zstd.
//
// DuckDB, pyarrow and ClickHouse read what it writes. It reads its own files, and refuses others
// with a reason. A file that is cut short or made to harm costs no more memory than the limits here.
package parquet

import "fmt"

// Kind is what a column holds.
type Kind uint8

// The kinds.
const (
	Text  Kind = iota // UTF-8
	Int               // 64 bits
	Float             // 64 bits
	Time              // microseconds since 1970 in UTC
)

func (k Kind) String() string { return [...]string{"text", "int", "float", "time"}[k] }

// Column is one column of a table: its name, and its values in the slice of its kind.
type Column struct {
	Name   string
	Kind   Kind
	Texts  []string  // of Text
	Ints   []int64   // of Int and Time
	Floats []float64 // of Float
}

// Len counts the values.
func (c *Column) Len() int {
	switch c.Kind {
	case Text:
		return len(c.Texts)
	case Float:
		return len(c.Floats)
	}
	return len(c.Ints)
}

// Limits for reading and writing.
const (
	groupRows  = 1 << 17  // rows of a row group that is written
	maxRows    = 1 << 20  // rows of a row group that is read
	maxFooter  = 64 << 20 // bytes of a footer
	maxPage    = 64 << 20 // bytes of an unpacked page
	maxColumns = 256
	maxGroups  = 1 << 15
	maxChunks  = 1 << 20 // of all groups
	// maxRatio is how many rows a byte of the file may represent, for all row groups after the first: a constant column needs almost no
	// bytes, a table of findings some bytes per row.
	maxRatio = 1000
)

const magic = "PAR1"

// What Parquet calls its parts by numbers.
const (
	typeInt64     = 2
	typeDouble    = 5
	typeByteArray = 6

	convertedUTF8   = 0
	convertedMicros = 10

	encodingPlain      = 0
	encodingRLE        = 3
	encodingDictionary = 8
	// encodingOldDictionary is the older name of the dictionary's own encoding.
	encodingOldDictionary = 2

	codecNone = 0
	codecZstd = 6

	pageData       = 0
	pageDictionary = 2
)

// FormatError is a file that is no Parquet file of this kind, or is damaged.
type FormatError struct {
	Path   string
	Offset int64
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s", e.Path, e.Offset, e.Reason)
}

// Hint is the way out.
func (e *FormatError) Hint() string {
	return "the file was cut short or changed, or another program wrote it; add its run again, or all runs of a folder merged-… and then delete that"
}
