package diff

import (
	"fmt"

	"github.com/memdiag/memdiag/snapshot"
)

// sentence describes the growth.
func (p *Processes) sentence(e *Reserve) string {
	who := p.Role
	switch {
	case p.Kernel:
		who = "the kernel's memory for the command"
	case p.Successive:
		who = "the peak of each new " + p.Role
	case p.PID == 0 && !p.Shared:
		who = "processes of " + p.Role + " together"
	case p.PID != 0:
		who += fmt.Sprintf(" (process %d)", p.PID)
	}
	if p.PID != 0 && p.Shared {
		who = "shared memory of " + who
	}
	rate := e.Rate.Bytes
	text := fmt.Sprintf("%s grew steadily by %s a second (%s to %s, 95 %% interval), %s in %s",
		who, snapshot.FormatBytes(rate.Value), snapshot.FormatBytes(rate.Low), snapshot.FormatBytes(rate.High), e.Growth, Second.Text(e.To-e.From))
	switch {
	case p.Alike == 2 && p.Of == 2:
		text += ", and so did the other process of this kind"
	case p.Alike == 2:
		text += fmt.Sprintf(", and so did 1 other of %d processes of this kind", p.Of)
	case p.Alike > 2:
		text += fmt.Sprintf(", and so did %d others of %d processes of this kind", p.Alike-1, p.Of)
	case p.Alone && p.PID != 0 && p.Of > 1:
		text += fmt.Sprintf(", as the only one of %d processes of this kind", p.Of)
	}
	switch {
	case p.Segments > 1:
		text += fmt.Sprintf(", in up to %s. Source line unknown", p.files())
		if p.OrOthers {
			text += ". Another program of this user may have created them"
		}
		return text
	case p.Shared && p.PID == 0:
		return text + ". Source line unknown. Files in a tmpfs count, too"
	case p.Shared:
		return text + ". Source line unknown"
	}
	if p.Kernel {
		return text + ". Sockets, pipes and files that are never closed are one reason"
	}
	if p.Recorded {
		return text + ", beyond what recorded stacks explain"
	}
	return text + ". Source line unknown: no stacks were recorded there. If it runs Python 3.10 or later, run longer: it is recorded once it has grown for some seconds, " +
		"unless it has another user, an environment of its own, or the option -I, -E or -S. If it runs an older Python, use a newer one. " +
		"If it runs no Python, use a heap profiler that memdiag reads, such as heaptrack"
}

// Known says what is known about the reason.
func (p *Processes) Known() string {
	switch {
	case p.Recorded:
		return "recorded stacks do not explain it"
	case p.Kernel:
		return "it belongs to no process"
	}
	return "no stacks were recorded there"
}

// Who is "loader worker 0", "shared memory of loader worker 0" or "processes of loader worker".
func (p *Processes) Who() string {
	switch {
	case p.Shared && p.PID != 0:
		return "shared memory of " + p.Role
	case p.Kernel:
		return p.Role
	case !p.Shared && p.PID == 0:
		return "processes of " + p.Role
	}
	return p.Role
}

// files is "235 files in /dev/shm/tmp1, likely written by loader worker 0".
func (p *Processes) files() string {
	text := fmt.Sprintf("%d files", p.Segments)
	if p.Folder != "" {
		text += " in " + p.Folder
	}
	if p.Writer != "" {
		text += ", likely written by " + p.Writer
	}
	return text
}

// clause is sentence in a few words: "loader worker 0 grows, +20.0 MiB/s: no stacks were recorded there".
func (p *Processes) clause(e *Reserve) string {
	grows := p.Who() + " grows"
	switch {
	case p.Successive:
		grows = "each new " + p.Role + " uses more memory than the one before"
	case p.Kernel:
	case p.Shared && p.Folder != "" && p.PID == 0:
		return fmt.Sprintf("%s grows, +%s/s, in up to %s", p.Role, snapshot.FormatBytes(e.Rate.Bytes.Value), p.files())
	case !p.Shared && p.PID == 0:
		grows = p.Who() + " grow together"
	}
	return fmt.Sprintf("%s, +%s/s: %s", grows, snapshot.FormatBytes(e.Rate.Bytes.Value), p.Known())
}

// Clause is String in a few words, for other processes than the recorded one.
func (e *Reserve) Clause() string { return e.Processes.clause(e) }
