package record_test

import "testing"

// watchedFunctions has what a watched function makes, and what looking at it makes, in tracemalloc's form and in a snapshot's.
const watchedFunctions = `
import memdiag
from memdiag import _snapshot, _traces, _watch

@memdiag.watch("f")
def f(): pass

wrapper = f.__code__.co_filename
made = ("/a/train.py", 4), (wrapper, 20), ("/a/train.py", 9)
looked = (_watch.__file__, 200), *made[1:]
alone = (wrapper, 20),
for stack in _traces.read([(0, 8, s, len(s)) for s in (made, looked, alone)]), _traces.shortened(made):
    print(*stack)

stacks = _snapshot.Stacks()
stacks.add(1, lambda: [("f", "/a/train.py", 4), ("watched", wrapper, 20), ("<module>", "/a/train.py", 9)])
print(*stacks.frames, stacks.stacks)
`

// A leak of a watched function had no line, since the wrapper's frame in its stack made it the recorder's own; and the
// wrapper's file is another in each recording.
func TestAWatchedFunctionsWrapperIsInNoStack(t *testing.T) {
	t.Parallel()
	agentProgram(t, watchedFunctions, `(('/a/train.py', 4), ('/a/train.py', 9))
('/a/train.py', 4) ('/a/train.py', 9)
('f', '/a/train.py', 4) ('<module>', '/a/train.py', 9) [[], [0, 1]]
`)
}
