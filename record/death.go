package record

import (
	"fmt"

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

// deaths counts kills in the control group of a command, which may move itself to another one.
type deaths struct {
	group groupFolder
	first kills
}

// look is where a process is now: memdiag itself, and then its command.
func (d *deaths) look(proc, groups string, pid int) {
	if at, _ := groupOf(proc, groups, pid); at.dir != d.group.dir || d.first == (kills{}) {
		if d.group.groupFiles != nil && (at.groupFiles == nil || at.dir == at.top) {
			return // it has ended, or is about to: the first version then shows the top
		}
		before := d.first
		d.group, d.first = at, killsIn(at)
		if before != (kills{}) {
			d.first.machine = before.machine
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
		who = fmt.Sprintf("; %s held most, %s", most.Role, most.Points[0].Anonymous)
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
