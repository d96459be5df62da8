// Package inject has a running Python process execute a file, in its main thread and between two of its instructions.
//
// Python 3.14 and later offer that themselves (sys.remote_exec). An older Python is stopped for some milliseconds with ptrace and made
// to call Py_AddPendingCall, which Python's own signal handlers use.
package inject

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Process is a running Python process.
type Process struct {
	PID int
	// InnerPID is the process's PID in its own namespace.
	InnerPID int
	Version  string // such as 3.11
	Program  string // the interpreter's file
	UID      int    // the process's effective user
	GID      int

	minor   int
	library mapped // the file that exports Python's functions
	modules []mapped
}

// Error says why nothing can be executed in a process, with a way out.
type Error struct {
	What, Way string
}

func (e *Error) Error() string { return e.What }

// Hint is the way out.
func (e *Error) Hint() string { return e.Way }

// mapped is an ELF file mapped into the process's memory.
type mapped struct {
	path  string
	start uint64
}

// addPendingCall and runString are the functions of Python that are called with ptrace.
const addPendingCall, runString = "Py_AddPendingCall", "PyRun_SimpleString"

// oldest is the minor version of the oldest Python that the agent supports.
const oldest = 10

var named = regexp.MustCompile(`python3\.([0-9]{1,3})`)

// mostMaps bounds how much of a process's memory map is read.
const mostMaps = 16 << 20

// Find inspects a process. If there is a way out, the error is an *Error.
func Find(pid int) (*Process, error) {
	if pid < 1 {
		return nil, fmt.Errorf("%d is no process", pid)
	}
	root := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(root + "/status")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d here", pid)
	}
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, InnerPID: pid, UID: id(status, "Uid:"), GID: id(status, "Gid:")}
	if text := value(status, "State:"); strings.HasPrefix(text, "Z") {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	if inner := strings.Fields(value(status, "NSpid:")); len(inner) > 0 {
		if p.InnerPID, err = strconv.Atoi(inner[len(inner)-1]); err != nil {
			return nil, err
		}
	}
	ours, _ := os.Readlink("/proc/self/ns/mnt")
	theirs, err := os.Readlink(root + "/ns/mnt")
	if err != nil {
		return nil, refused(pid, err)
	}
	if ours != theirs {
		return nil, &Error{fmt.Sprintf("process %d is in a container, whose files are others", pid),
			fmt.Sprintf("run memdiag in the container; or: nsenter -t %d -m -p memdiag attach PID, with the PID that it has there", pid)}
	}
	p.Program, err = os.Readlink(root + "/exe")
	if err != nil {
		return nil, refused(pid, err)
	}
	p.Program = strings.TrimSuffix(p.Program, " (deleted)")
	maps, err := read(root + "/maps")
	if err != nil {
		return nil, refused(pid, err)
	}
	p.modules = modules(string(maps))
	for _, m := range p.modules {
		match := named.FindStringSubmatch(filepath.Base(m.path))
		if !strings.Contains(filepath.Base(m.path), "python") && m.path != p.Program || !m.exports(addPendingCall, runString) {
			continue
		}
		p.library = m
		if match == nil {
			match = named.FindStringSubmatch(m.path)
		}
		if match != nil {
			p.minor, _ = strconv.Atoi(match[1]) // digits
		}
	}
	switch {
	case p.library.path == "":
		return nil, &Error{fmt.Sprintf("process %d (%s) is no Python", pid, filepath.Base(p.Program)), "of a Go program memdiag record --pprof URL records the heap profiles"}
	case p.minor == 0:
		return nil, fmt.Errorf("process %d (%s) is a Python of an unknown version", pid, p.library.path)
	case p.minor < oldest:
		return nil, fmt.Errorf("process %d is Python 3.%d; memdiag needs 3.%d or later", pid, p.minor, oldest)
	}
	p.Version = fmt.Sprintf("3.%d", p.minor)
	return p, nil
}

// Runs reports whether the process still runs. A zombie does not.
func (p *Process) Runs() bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/status")
	return err == nil && !strings.HasPrefix(value(status, "State:"), "Z")
}

// Own makes the process's user the owner of a file. Only root can do that; for others it does nothing.
func (p *Process) Own(path string) error {
	if os.Geteuid() != 0 || p.UID <= 0 {
		return nil
	}
	return os.Lchown(path, p.UID, p.GID)
}

func refused(pid int, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &Error{fmt.Sprintf("process %d may not be looked into", pid),
			"attach as the process's own user, or as root; in a container that needs CAP_SYS_PTRACE"}
	}
	return err
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, mostMaps))
}

// id is the effective ID in a line of status; -1 if there is none.
func id(status []byte, key string) int {
	fields := strings.Fields(value(status, key))
	if len(fields) < 2 {
		return -1
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return n
}

func value(status []byte, key string) string {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// modules lists the files mapped into a process's memory, each with the address of its first page.
func modules(maps string) (all []mapped) {
	seen := make(map[string]bool)
	for line := range strings.Lines(maps) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(fields) < 6 {
			continue
		}
		path := strings.TrimLeft(fields[5], " ")
		offset, err := strconv.ParseUint(fields[2], 16, 64)
		if err != nil || offset != 0 || !strings.HasPrefix(path, "/") || seen[path] {
			continue
		}
		from, _, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			continue
		}
		seen[path] = true
		all = append(all, mapped{path, start})
	}
	return all
}

// exports reports whether a file exports these functions.
func (m mapped) exports(names ...string) bool {
	for _, name := range names {
		if _, err := m.address(name); err != nil {
			return false
		}
	}
	return true
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// address is the address of a function in the process's memory.
func (m mapped) address(name string) (uint64, error) {
	f, err := elf.Open(m.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	if want := machines[runtime.GOARCH]; f.Class != elf.ELFCLASS64 || want != 0 && f.Machine != want {
		return 0, fmt.Errorf("%s is of another machine", m.path) // the process runs under an emulator
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", m.path, err)
	}
	for _, s := range symbols {
		if s.Name == name && s.Section != elf.SHN_UNDEF {
			return m.start + s.Value - lowest(f), nil
		}
	}
	return 0, fmt.Errorf("%s has no function %s", m.path, name)
}

// lowest is the address of a file's first page, according to the file itself.
func lowest(f *elf.File) uint64 {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			return p.Vaddr &^ (pageSize - 1)
		}
	}
	return 0
}

const pageSize = 4096

// statement is the Python statement that executes a file. Its errors do not reach the program.
func statement(file string) (string, error) {
	if strings.ContainsAny(file, "'\"\\\n\r") {
		return "", fmt.Errorf("%q has characters that cannot be quoted here", file)
	}
	return fmt.Sprintf(`exec("try:\n with open('%s') as f: t = f.read()\n exec(compile(t,'%s','exec'),{'__file__':'%s'})\nexcept BaseException:\n pass",{})`, file, file, file), nil
}

// Pending is a call that the process was asked to make.
type Pending struct {
	How    string // "sys.remote_exec" or "ptrace"
	cancel func()
}

// Cancel withdraws the call: it is not executed if it has not begun, and nothing is left in the process's memory.
func (c *Pending) Cancel() { c.cancel() }

// Execute asks the process to execute a file as soon as its main thread runs Python code, and does not wait for that. scratch is a
// folder for a second file that names the first.
func (p *Process) Execute(ctx context.Context, file, scratch string) (*Pending, error) {
	text, err := statement(file)
	if err != nil {
		return nil, err
	}
	var first error
	if p.minor >= 14 && (os.Geteuid() != 0 || p.UID == 0) { // root runs no other user's interpreter, and writes nothing in a folder of theirs
		pending, err := p.remote(ctx, text, scratch)
		if err == nil {
			return pending, nil
		}
		first = err
	}
	pending, err := p.stopAndCall(text)
	if err != nil && first != nil {
		return nil, first
	}
	return pending, err
}
