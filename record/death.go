package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// kills count how often the kernel has killed a process since memory ran out; -1 where it does not say.
type kills struct {
	group, machine int64          // in a control group, and in all
	limit          snapshot.Bytes // the lowest of that group and those above it; Unknown for none
}

// killsIn are those in a group, or without one those of the machine alone.
func killsIn(at groupFolder) kills {
	k := kills{group: -1, machine: -1, limit: snapshot.Unknown}
	if at.groupFiles != nil {
		k.group, k.limit = int64(at.number(at.eventsKill, at.killed)), at.least()
	}
	if n, ok := entry("/proc/vmstat", "oom_kill"); ok {
		k.machine = int64(n)
	}
	return k
}

// deaths counts kills in the control group of a command, which may move itself to another one. Others may be in it, too: a kill is
// the command's if one of its processes has ended soon after.
type deaths struct {
	group groupFolder
	first kills // before any that may be the command's

	last     kills
	before   []*followed // the processes at the last look
	suspects []*followed // those that were there before the counter moved; nil when it has not, of late
	until    time.Time   // by when one of them must have ended
	machine  time.Time   // of first.machine
	begun    int64       // kills of the machine at the first look
	victim   *followed   // the largest of the command's that ended after a kill; nil for none
}

// soon is how long the kernel may take to end a process, which gives back what it has.
const soon = 5 * time.Second

// see takes note of the processes and of the counters at a look.
func (d *deaths) see(now time.Time, counted kills, processes []*followed) {
	if d.before != nil && counted.group > d.last.group && d.last.group >= 0 {
		d.suspects, d.until = d.before, now.Add(soon)
	}
	if d.suspects != nil {
		for _, p := range d.suspects {
			gone := !slices.ContainsFunc(processes, func(f *followed) bool { return f.PID == p.PID && f.Started == p.Started })
			// The kernel kills what has most: a small one beside it has ended by itself.
			if gone && 2*held(p) >= held(largest(d.suspects)) && (d.victim == nil || held(p) > held(d.victim)) {
				d.victim = p
			}
		}
		switch {
		case d.victim != nil:
			d.suspects = nil
		case now.After(d.until):
			d.suspects, d.first.group = nil, counted.group // it was none of the command's
		}
	}
	if now.Sub(d.machine) > soon { // what the machine's counter counts is anyone's: what is old has not ended the command
		d.machine, d.first.machine = now, d.last.machine
	}
	d.last = counted
	if len(processes) > 0 {
		d.before = processes
	}
}

// said is what since says of a command that ended with a code.
func (d *deaths) said(code int) (said string, kernel bool) {
	now := killsIn(d.group)
	if d.victim == nil && len(d.before) == 1 && code != killedCode {
		now.group = d.first.group // its only process ended by itself
	}
	most := d.victim
	if most == nil && len(d.before) > 0 {
		most = largest(d.before)
	}
	said, kernel = d.first.since(now, code, most)
	if !kernel && now.machine > d.begun {
		return "", false // it may have been the kernel, some time ago
	}
	return said, kernel
}

func largest(of []*followed) *followed {
	return slices.MaxFunc(of, func(a, b *followed) int { return cmp.Compare(held(a), held(b)) })
}

// held is the private memory of a process at its last look.
func held(f *followed) snapshot.Bytes { return f.Points[0].Anonymous + f.Points[0].Swapped }

// look is where a process is now: memdiag itself, and then its command.
func (d *deaths) look(proc, groups string, pid int) {
	if at, _ := groupOf(proc, groups, pid); at.dir != d.group.dir || d.first == (kills{}) {
		if d.group.groupFiles != nil && (at.groupFiles == nil || at.dir == at.top) {
			return // it has ended, or is about to: the first version then shows the top
		}
		before := d.first
		d.group, d.first = at, killsIn(at)
		d.last, d.suspects = d.first, nil
		if before != (kills{}) {
			d.first.machine = before.machine
		} else {
			d.begun = d.first.machine
		}
	}
}

// killedCode is the exit code of a command that SIGKILL ended.
const killedCode = 128 + 9

// since says whether the kernel killed a process of the command since memory ran out, or of a command
// that was killed that it did not; "" where nothing is to be said. most is the process that had most
// memory, or nil. kernel is whether it was the kernel.
func (k kills) since(now kills, code int, most *followed) (said string, kernel bool) {
	who := ""
	if most != nil {
		at := &most.Points[0]
		who = fmt.Sprintf("; %s held most, %s", most.Role, held(most))
		if grown := held(most) - most.begun; grown > 0 && at.Time.Sub(most.first) >= time.Second {
			who += fmt.Sprintf(", %s more than %s before", grown, at.Time.Sub(most.first).Round(time.Second))
		}
	}
	switch {
	case k.group >= 0 && now.group > k.group && k.limit >= 0:
		return fmt.Sprintf(snapshot.KernelKilled+"the limit of %s of the control group was reached%s", k.limit, who), true
	case k.group >= 0 && now.group < 0 && k.limit >= 0 && code == killedCode && k.machine >= 0 && now.machine > k.machine:
		return fmt.Sprintf(snapshot.KernelKilled+"the limit of %s of its control group, which is gone, was reached, or the machine had no memory left%s", k.limit, who), true
	case k.group >= 0 && now.group > k.group || code == killedCode && k.machine >= 0 && now.machine > k.machine:
		return snapshot.KernelKilled + "the machine had no memory left" + who, true
	case code == killedCode && k.machine >= 0:
		return "another process sent the signal that killed it; the kernel did not kill it for lack of memory", false
	}
	return "", false
}
