//go:build !linux

package mem

import "github.com/memdiag/memdiag/snapshot"

func resident() snapshot.Bytes { return snapshot.Unknown }
