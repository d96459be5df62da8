//go:build unix

package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAgentWithoutAPlaceNamesTheFolderOnce: three lines of output named two of the agent's own files each.
func TestAnAgentWithoutAPlaceNamesTheFolderOnce(t *testing.T) {
	in := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(in, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackAgent(in); err == nil || err.Error() != in+": not a directory" {
		t.Error(err)
	}
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackAgent(in); err == nil || !strings.HasPrefix(err.Error(), in+": no such file") {
		t.Error(err)
	}
}
