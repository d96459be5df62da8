package registry

import (
	"reflect"

	"github.com/memdiag/memdiag/snapshot"
)

// NodeBytes is the size of a node's block on Options.Records.
func NodeBytes() snapshot.Bytes { return snapshot.Bytes(reflect.TypeFor[token]().Size()) }

// EntryBytes is the size of the block of an entry of the index, which a node has
// from RulesComponents on.
func EntryBytes() snapshot.Bytes { return snapshot.Bytes(reflect.TypeFor[*token]().Size()) }
