package inject

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// stopWithin is how long the thread may take to stop, and then to return from the call.
	stopWithin = 2 * time.Second
	// redZone is the area below the stack pointer that a function may use (128 B), plus room for the call.
	redZone = 128 + 256
	// mostRegisters bounds the size of the vector registers; AMX needs 11 KiB.
	mostRegisters = 64 << 10
	// vectors selects the vector registers: NT_X86_XSTATE.
	vectors = 0x202
)

// stopAndCall has the main thread call Py_AddPendingCall(PyRun_SimpleString, text).
//
// The text is written into an unused part of the last page of a library's variables. The call returns to address 0, which has no code,
// so that the thread stops there with a signal, which the program does not see. Then all registers are restored.
func (p *Process) stopAndCall(text string) (*Pending, error) {
	function, err := p.library.address(addPendingCall)
	if err != nil {
		return nil, err
	}
	run, err := p.library.address(runString)
	if err != nil {
		return nil, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.PID), os.O_RDWR, 0)
	if err != nil {
		return nil, refused(p.PID, err)
	}
	at, err := p.room(memory, len(text)+1)
	if err == nil {
		_, err = memory.WriteAt(append([]byte(text), 0), int64(at)) //nolint:gosec // an address of a user's memory
	}
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	clear := func() {
		_, _ = memory.WriteAt(make([]byte, len(text)), int64(at)) //nolint:gosec // as above; the process may have ended
		_ = memory.Close()
	}
	if err := call(p.PID, function, run, at); err != nil {
		clear()
		return nil, err
	}
	return &Pending{How: "ptrace", cancel: clear}, nil
}

// room is the address of size unused bytes: between the end of a library's variables and the end of their page.
func (p *Process) room(memory *os.File, size int) (uint64, error) {
	for _, m := range append([]mapped{p.library}, p.modules...) {
		if strings.HasPrefix(filepath.Base(m.path), "ld-musl-") { // musl's malloc uses the ends of libraries' pages
			return 0, &Error{fmt.Sprintf("process %d uses musl, which leaves no memory unused", p.PID), "start the program with memdiag record"}
		}
	}
	for _, m := range append([]mapped{p.library}, p.modules...) {
		if strings.HasPrefix(filepath.Base(m.path), "ld-") { // glibc's loader allocates after its variables
			continue
		}
		f, err := elf.Open(m.path)
		if err != nil {
			continue
		}
		low := lowest(f)
		for _, prog := range f.Progs {
			end := prog.Vaddr + prog.Memsz
			if prog.Type != elf.PT_LOAD || prog.Flags&elf.PF_W == 0 || prog.Memsz <= prog.Filesz {
				continue
			}
			from := (m.start + end - low + 63) &^ 63
			page := (m.start + end - low + pageSize - 1) &^ (pageSize - 1)
			there := make([]byte, size)
			if from+uint64(size) > page { //nolint:gosec // a length
				continue
			}
			if _, err := memory.ReadAt(there, int64(from)); err == nil && !bytes.ContainsFunc(there, func(r rune) bool { return r != 0 }) { //nolint:gosec // as above
				_ = f.Close()
				return from, nil
			}
		}
		_ = f.Close()
	}
	return 0, errors.New("the process has no room for a line of text")
}

// call has a thread call a function with two arguments.
func call(tid int, function, first, second uint64) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		if errors.Is(err, unix.EPERM) {
			return &Error{fmt.Sprintf("process %d may not be stopped: a debugger has it, or the system does not let you", tid),
				"attach as root, or allow it: sysctl kernel.yama.ptrace_scope=0; a container needs CAP_SYS_PTRACE"}
		}
		return fmt.Errorf("process %d cannot be stopped: %w", tid, err)
	}
	var signals []unix.Signal // signals for the program that arrived meanwhile
	defer func() {
		var pass unix.Signal
		if len(signals) > 0 {
			pass, signals = signals[0], signals[1:]
		}
		if _, _, failed := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(pass), 0, 0); failed != 0 && err == nil {
			err = failed
		}
		for _, s := range signals {
			_ = unix.Tgkill(tid, tid, s) // it may have ended
		}
	}()
	if err := unix.PtraceInterrupt(tid); err != nil {
		return err
	}
	if err := waitStop(tid, &signals, 0); err != nil {
		return err
	}
	var before unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &before); err != nil {
		return err
	}
	wide, err := registers(tid, unix.PTRACE_GETREGSET, make([]byte, mostRegisters))
	if err != nil {
		return err
	}
	regs := before
	regs.Rsp = (before.Rsp-redZone)&^15 - 8
	regs.Rip, regs.Rdi, regs.Rsi, regs.Rax = function, first, second, 0
	regs.Orig_rax = ^uint64(0) // no system call is to be restarted
	if _, err := unix.PtracePokeData(tid, uintptr(regs.Rsp), make([]byte, 8)); err != nil {
		return err
	}
	if err := unix.PtraceSetRegs(tid, &regs); err != nil {
		return err
	}
	failed := unix.PtraceCont(tid, 0)
	if failed == nil {
		failed = waitStop(tid, &signals, unix.SIGSEGV)
	}
	var after unix.PtraceRegs
	if failed == nil {
		failed = unix.PtraceGetRegs(tid, &after)
	}
	_, back := registers(tid, unix.PTRACE_SETREGSET, wide)
	if err := errors.Join(unix.PtraceSetRegs(tid, &before), back); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return failed
	case after.Rip != 0:
		return fmt.Errorf("process %d could not be asked: the call ended elsewhere", tid)
	case int32(after.Rax) != 0: //nolint:gosec // the low half is what an int function returns
		return fmt.Errorf("process %d has too many calls waiting already", tid)
	}
	return nil
}

// registers reads or writes the vector registers, in the size that this processor has.
func registers(tid int, request int, in []byte) ([]byte, error) {
	vector := unix.Iovec{Base: &in[0], Len: uint64(len(in))}
	_, _, failed := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), vectors, uintptr(unsafe.Pointer(&vector)), 0, 0) // which x/sys has for arm64 only
	runtime.KeepAlive(in)
	if failed != 0 {
		return nil, failed
	}
	return in[:vector.Len], nil
}

// waitStop waits until the thread stops on the signal on, or on anything if on is 0. Other signals are collected for the program.
func waitStop(tid int, signals *[]unix.Signal, on unix.Signal) error {
	late := false
	for begun := time.Now(); ; {
		var status unix.WaitStatus
		got, err := unix.Wait4(tid, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case got == 0 || err != nil:
			if time.Since(begun) > stopWithin && on != 0 && !late {
				late, begun = true, time.Now()
				_ = unix.PtraceInterrupt(tid) // it stops, or does not within the same time again
			} else if time.Since(begun) > stopWithin && on == 0 { // else its registers are changed: it is waited for
				return fmt.Errorf("process %d does not stop within %v", tid, stopWithin)
			}
			time.Sleep(100 * time.Microsecond)
			continue
		case status.Exited() || status.Signaled():
			return fmt.Errorf("process %d has ended", tid)
		case on != 0 && status.StopSignal() == on:
			return nil
		case status.TrapCause() != unix.PTRACE_EVENT_STOP:
			*signals = append(*signals, status.StopSignal())
		case late:
			return fmt.Errorf("process %d did not return from the call within %v", tid, stopWithin)
		}
		if on == 0 {
			return nil
		}
		if err := unix.PtraceCont(tid, 0); err != nil {
			return err
		}
	}
}
