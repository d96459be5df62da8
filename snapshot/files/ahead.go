package files

import (
	"path/filepath"
	"sync"
)

// openAtOnce is how many files are waited for at once. On a network file system each one that is opened takes several answers of a
// server; a local one takes no longer.
const openAtOnce = 16

// opening opens files in their order, some before they are asked for. All of them must be asked for.
type opening struct {
	answers []chan answer
	room    chan struct{}
	at      int
}

type answer struct {
	source *source
	err    error
}

// openAhead begins to open files of a folder.
func openAhead(dir string, names []string) *opening {
	o := &opening{answers: make([]chan answer, len(names)), room: make(chan struct{}, openAtOnce)}
	for i := range o.answers {
		o.answers[i] = make(chan answer, 1)
	}
	go func() {
		for i, name := range names {
			o.room <- struct{}{}
			go func() {
				source, err := openFile(filepath.Join(dir, name))
				o.answers[i] <- answer{source, err}
			}()
		}
	}()
	return o
}

// next is the next file, which the caller closes.
func (o *opening) next() (*source, error) {
	a := <-o.answers[o.at]
	o.at++
	<-o.room
	return a.source, a.err
}

// fewAtOnce calls do for 0 to n-1, and returns when all have returned.
func fewAtOnce(n int, do func(i int)) {
	var group sync.WaitGroup
	room := make(chan struct{}, openAtOnce)
	for i := range n {
		room <- struct{}{}
		group.Go(func() {
			do(i)
			<-room
		})
	}
	group.Wait()
}
