package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// kills counts processes that the kernel killed because memory ran out; -1 if the kernel does not report it.
type kills struct {
	group, machine int64          // in a control group, and on the whole machine
	limit          snapshot.Bytes // the lowest limit of that group and of its parents; Unknown for none
}

// killsIn returns the counts of a group and the machine, or of the machine alone if there is no group.
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

// deaths counts kills in the control group of a command, which may move to another group. Others may be in the group, too. A kill is
// the command's if one of its processes ends soon after it.
type deaths struct {
	group groupFolder
	first kills // the counts before any kill that may be the command's

	last     kills
	before   []*followed // the processes at the last look
	suspects []*followed // the processes that existed before the counter rose; nil if it has not risen lately
	until    time.Time   // by when one of them must have ended
	machine  time.Time   // when first.machine was read
	begun    int64       // kills on the machine at the first look
	victim   *followed   // the command's largest process that ended after a kill; nil for none
}

// soon is how long the kernel may take to end a process and free its memory.
const soon = 5 * time.Second

// see records the processes and the counters of a look.
func (d *deaths) see(now time.Time, counted kills, processes []*followed) {
	if d.before != nil && counted.group > d.last.group && d.last.group >= 0 {
		d.suspects, d.until = d.before, now.Add(soon)
	}
	if d.suspects != nil {
		for _, p := range d.suspects {
			gone := !slices.ContainsFunc(processes, func(f *followed) bool { return f.PID == p.PID && f.Started == p.Started })
			// The kernel kills the largest process: a small one that has gone ended by itself.
			if gone && 2*held(p) >= held(largest(d.suspects)) && (d.victim == nil || held(p) > held(d.victim)) {
				d.victim = p
			}
		}
		switch {
		case d.victim != nil:
			d.suspects = nil
		case now.After(d.until):
			d.suspects, d.first.group = nil, counted.group // the killed process was not the command's
		}
	}
	if now.Sub(d.machine) > soon { // the machine's counter includes everyone's kills, and an old one has not ended the command
		d.machine, d.first.machine = now, d.last.machine
	}
	d.last = counted
	if len(processes) > 0 {
		d.before = processes
	}
}

// said returns what since says about a command that ended with this exit code.
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
		return "", false // the kernel may have killed one earlier
	}
	return said, kernel
}

func largest(of []*followed) *followed {
	return slices.MaxFunc(of, func(a, b *followed) int { return cmp.Compare(held(a), held(b)) })
}

// held is the private memory of a process at its last look.
func held(f *followed) snapshot.Bytes { return f.Points[0].Anonymous + f.Points[0].Swapped }

// look finds the control group of a process: first of memdiag itself, then of its command.
func (d *deaths) look(proc, groups string, pid int) {
	if at, _ := groupOf(proc, groups, pid); at.dir != d.group.dir || d.first == (kills{}) {
		if d.group.groupFiles != nil && (at.groupFiles == nil || at.dir == at.top) {
			return // the process has ended or is ending: cgroup v1 then shows the top group
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

// since says whether the kernel killed a process of the command because memory ran out, or, if the command was killed, that the kernel
// did not. It returns "" if there is nothing to say. most is the process with the most memory, or nil. kernel reports whether the
// kernel killed it.
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
