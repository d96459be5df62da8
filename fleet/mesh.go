package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mesh says where a rank is in a distributed training: the axes with their lengths. The last axis changes fastest, as launchers number
// ranks.
type Mesh []Axis

// Axis is one of a mesh.
type Axis struct {
	Name   string
	Length int
}

// ParseMesh reads "pp=4,dp=8,tp=2".
func ParseMesh(text string) (m Mesh, err error) {
	for _, part := range strings.Split(text, ",") {
		name, length, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(length)
		twice := slices.ContainsFunc(m, func(a Axis) bool { return a.Name == name })
		if !ok || err != nil || n < 1 || n > 1<<20 || name == "" || twice {
			return nil, fmt.Errorf("%q: want axes with their lengths, the last changing fastest, such as pp=4,dp=8,tp=2", text)
		}
		m = append(m, Axis{name, n})
	}
	return m, nil
}

func (m Mesh) String() string {
	var parts []string
	for _, a := range m {
		parts = append(parts, a.Name+"="+strconv.Itoa(a.Length))
	}
	return strings.Join(parts, ",")
}

// Of is the pipeline stage (the axis pp) and the data-parallel replica (dp) of a rank; -1 if the mesh has no such axis.
func (m Mesh) Of(rank int) (stage, replica int) {
	stage, replica = -1, -1
	if rank < 0 {
		return stage, replica
	}
	for i := len(m) - 1; i >= 0; i-- {
		at := rank % m[i].Length
		rank /= m[i].Length
		switch m[i].Name {
		case "pp":
			stage = at
		case "dp":
			replica = at
		}
	}
	return stage, replica
}
