package bounded

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAListIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list List[int]
		var slice []int
		for range rapid.IntRange(0, 3*pieceLen).Draw(t, "length") {
			list.Append(list.Len())
			slice = append(slice, len(slice))
		}
		if list.Len() != len(slice) {
			t.Fatalf("%d elements, want %d", list.Len(), len(slice))
		}
		if len(slice) == 0 {
			return
		}
		at := rapid.IntRange(0, len(slice)-1).Draw(t, "changed")
		*list.At(at), slice[at] = -1, -1
		for i, want := range slice {
			if got := *list.At(i); got != want {
				t.Fatalf("element %d is %d, want %d", i, got, want)
			}
		}
	})
}
