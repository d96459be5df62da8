package record_test

import "testing"

// largeFiles are a report of a program with much code of its own, and a snapshot.
const largeFiles = `
import os, tempfile
from memdiag import _files

folder = tempfile.mkdtemp()
for name in ".agent_1.json", ".agent_rank3_1.json", "snapshot_1.json":
    _files.write(folder, name, b"{" + b" " * 2 * _files.COMPRESS_FROM + b"}")
    with open(os.path.join(folder, name), "rb") as f:
        print(f.read(1), end=" ")
`

// A report of more than 64 KiB was compressed, and said not to have been written.
func TestALargeReportIsNotCompressed(t *testing.T) {
	t.Parallel()
	agentProgram(t, largeFiles, `b'{' b'{' b'\x1f' `)
}
