package record

import (
	"fmt"
	"os"

	"github.com/memdiag/memdiag/snapshot"
)

// kills count how often the kernel has killed a process since memory ran out; -1 where it does not say.
type kills struct {
	group, machine int64          // in memdiag's control group, in which its command begins, and in all
	limit          snapshot.Bytes // of that group; Unknown for none
}

func countKills() kills {
	g := group("/proc", "/sys/fs/cgroup", os.Getpid(), func(int) bool { return true })
	k := kills{group: g.Killed, machine: -1, limit: g.Limit}
	if n, ok := entry("/proc/vmstat", "oom_kill"); ok {
		k.machine = int64(n)
	}
	return k
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
		return fmt.Sprintf("the kernel killed a process: the limit of %s of the control group was reached%s", k.limit, who), true
	case k.group >= 0 && now.group > k.group || code == killedCode && k.machine >= 0 && now.machine > k.machine:
		return "the kernel killed a process: the machine had no memory left" + who, true
	case code == killedCode && k.machine >= 0:
		return "a process sent the signal that killed it: the kernel killed nothing for want of memory", false
	}
	return "", false
}
