package record

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestARoleIsWhatAPersonWouldCallAProcess(t *testing.T) {
	line := func(words ...string) string { return strings.Join(words, "\x00") + "\x00" }
	for _, c := range []struct {
		line, name string
		forked     bool
		want       string
	}{
		{line("python3", "train.py", "--lr", "1"), "python3", false, "train.py"},
		{line("/usr/bin/python3.12", "-u", "-X", "dev", "/work/train.py"), "python3.12", false, "train.py"},
		{line("python", "-m", "torch.distributed.run", "train.py"), "python", false, "torch.distributed.run"},
		{line("python", "-c", "from multiprocessing.resource_tracker import main;main(5)"), "python", false, "resource tracker"},
		{line("python", "-c", "from joblib.externals.loky.backend.resource_tracker import main; main(7, False)"), "python", false, "resource tracker"},
		{line("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--multiprocessing-fork"), "python", false, "spawned python"},
		{line("python", "train.py"), "python", true, "fork of train.py"},
		{line("python", "train.py"), "pt_data_worker", true, "loader worker"},
		{"ray::Trainer.step()\x00\x00\x00", "ray::Trainer.st", false, "ray::Trainer"},
		{"ray::IDLE\x00", "ray::IDLE", false, "ray::IDLE"},
		{"VLLM::EngineCore_0\x00\x00", "VLLM::EngineCor", false, "VLLM::EngineCore_0"},
		{line("/bin/sh", "-c", "train"), "sh", false, "sh"},
		{"", "kworker", false, "kworker"},
	} {
		if got := roleOf([]byte(c.line), c.name, c.forked); got != c.want {
			t.Errorf("%q, %s: %q; want %q", c.line, c.name, got, c.want)
		}
	}
	for environment, want := range map[string]string{"A=1\x00RANK=3\x00": "3", "RANK=x\x00": "", "WORLD_RANK=3\x00": "", "RANK=\x00": "", "": ""} {
		if got := rankIn([]byte(environment)); got != want {
			t.Errorf("%q: %q; want %q", environment, got, want)
		}
	}
}

func TestAProcessThatWritesACheckpointIsKnownByItsFiles(t *testing.T) {
	proc := t.TempDir()
	open := func(pid, file, flags string) {
		for _, dir := range []string{"fd", "fdinfo"} {
			if err := os.MkdirAll(filepath.Join(proc, pid, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(file, filepath.Join(proc, pid, "fd", "3")); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "fdinfo", "3"), []byte("pos:\t0\nflags:\t"+flags+"\nmnt_id:\t1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open("1", "/data/checkpoints/train.log", "0100001") // of the parent
	for i, c := range []struct {
		file, flags string
		want        bool
	}{
		{"/data/run/model_50.pt", "0100001", true},
		{"/data/checkpoint-500/weights.bin", "0100002", true},
		{"/data/model.safetensors.tmp", "01", true},
		{"/data/model_50.pt", "0100000", false}, // it reads it
		{"/data/train.log", "0100001", false},
		{"/data/script", "0100001", false},
		{"/data/checkpoints/train.log", "0100001", false}, // its parent has it open, too
	} {
		pid := 7 + i
		open(strconv.Itoa(pid), c.file, c.flags)
		if got := writesCheckpoint(proc, pid, 1); got != c.want {
			t.Errorf("%s, %s: %v", c.file, c.flags, got)
		}
	}
}
