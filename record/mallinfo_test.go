package record_test

import "testing"

// oldMalloc has glibc's figures of malloc as versions before 2.33 give them, in 32 bits, beside today's.
const oldMalloc = `
import ctypes
from memdiag._heap import mallinfo, unwrapped

now = iter([(2**32 - 10, 7, 0), (5, 7, 2**31 - 1), (2**32 - 20, 6, 2**32 - 2), (2**32 - 20, 6, 1)])
whole = unwrapped(lambda: next(now))
print([whole() for _ in range(3)])

class Old:
    mallinfo = ctypes.CDLL(None).mallinfo

read, old = mallinfo(), mallinfo(Old)
before, was = read(), old()
kept = bytearray(100 << 20)
after, then = read(), old()
print(abs(sum(after) - sum(before) - sum(then) + sum(was)) < 1 << 20, sum(then) - sum(was) > 99 << 20)
print(mallinfo(object()))
`

func TestTheHeapOfAnOldGlibcIsKnown(t *testing.T) {
	t.Parallel()
	agentProgram(t, oldMalloc, "[(4294967301, 7, 2147483647), (4294967276, 6, 4294967294), (4294967276, 6, 4294967297)]\nTrue True\nNone\n")
}
