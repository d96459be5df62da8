package bounded

// pieceLen is how many elements of a List are made room for at once.
const pieceLen = 1 << 12

// List is a list that grows in pieces. A growing slice leaves old arrays as garbage, in all more than its final size; a List uses only
// the memory that is charged for its elements. The zero value is empty.
type List[T any] struct {
	pieces [][]T
	count  int
}

// Append adds an element at the end.
func (l *List[T]) Append(v T) {
	at := l.count / pieceLen
	if at == len(l.pieces) {
		var piece []T // the first grows as it needs to: most tables are small
		if at > 0 {
			piece = make([]T, 0, pieceLen)
		}
		l.pieces = append(l.pieces, piece)
	}
	l.pieces[at] = append(l.pieces[at], v)
	l.count++
}

// Len counts the elements.
func (l *List[T]) Len() int { return l.count }

// At is the element at a place below Len; it may be changed there.
func (l *List[T]) At(i int) *T { return &l.pieces[i/pieceLen][i%pieceLen] }
