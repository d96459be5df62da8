package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhoElseIsOnAGPUIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	smi := "#!/bin/sh\nprintf 'NVIDIA H200, 42, /usr/bin/python3, 20480\\nNVIDIA H200, 7, a, b\\033, 300\\nNVIDIA H200, 8, small, 20\\nNVIDIA H200, 9, x, [N/A]\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(smi), 0o700); err != nil {
		t.Fatal(err)
	}
	want := []string{"python3 (process 42) takes 20.0 GiB of NVIDIA H200", `a, b\x1b (process 7) takes 300 MiB of NVIDIA H200`}
	if got := besideOnGPUs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\nexit 9\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := besideOnGPUs(); got != nil {
		t.Errorf("without a driver: %q", got)
	}
}
