// Package screen shows a watched run on a whole terminal.
package screen

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/watch"
)

// Options configure the screen, and the actions of its keys.
type Options struct {
	In    io.Reader // a terminal
	Out   io.Writer // a terminal
	Color bool
	Here  report.Folder
	// Report writes a report of the run, and returns where. It may take a while.
	Report func() (path string, err error)
}

// Screen is a terminal that shows a run. Its methods may be called from several goroutines; calls before Run wait for it.
type Screen struct{ program *tea.Program }

// New is a screen that ends with ctx.
func New(ctx context.Context, o Options) *Screen {
	return &Screen{tea.NewProgram(model{o: o}, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())}
}

// Run draws until the user quits, Quit is called, or the screen's context is done. It then restores the terminal.
func (s *Screen) Run() error {
	_, err := s.program.Run()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Look shows a look. The screen stays after the last one, until the user quits.
func (s *Screen) Look(look *watch.Look) { s.program.Send(looked{look}) }

// Say shows a line below the list; the latest lines stay.
func (s *Screen) Say(line string) { s.program.Send(event(line)) }

// Quit ends the screen.
func (s *Screen) Quit() { s.program.Quit() }

// The messages: a look, a line for the list of events, the result of a report, and a tick each second.
type (
	looked   struct{ *watch.Look }
	event    string
	reported string
	second   struct{}
)

// mostEvents is more than any terminal has lines for.
const mostEvents = 100

// model is the screen and its data.
type model struct {
	o    Options
	s    report.Screen
	look *watch.Look
	rank int // index of the rank that is shown

	writing bool // whether a report is being written
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return tick }

func tick() tea.Msg {
	time.Sleep(time.Second)
	return second{}
}

// Update implements tea.Model.
func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.s.Width, m.s.Height = message.Width, message.Height
		m.s.Scroll(0)
	case second:
		return m, tick
	case reported:
		m.s.Said, m.writing = string(message), false
	case event:
		m.s.Events = append(slices.Clone(m.s.Events[max(0, len(m.s.Events)-mostEvents):]), string(message))
	case looked:
		m.look = message.Look
		m.show()
	case tea.KeyPressMsg:
		return m.key(message.String())
	}
	return m, nil
}

// show takes the shown rank from the last look.
func (m *model) show() {
	if m.look == nil {
		return
	}
	m.rank = min(m.rank, len(m.look.Ranks)-1)
	rank := &m.look.Ranks[m.rank]
	m.s.Run, m.s.Result, m.s.Ended = rank.Run, rank.Result, m.look.Ended
	m.s.Rank, m.s.Ranks = rank.Number(), len(m.look.Ranks)
	m.s.State = states(rank, m.look.Ended)
	m.sort()
}

// states returns a function for the current state of a site. A verdict counts only at the end of the run.
func states(rank *watch.Rank, ended bool) func(*diff.Finding) string {
	known := make(map[*diff.Finding]string)
	for _, s := range rank.Suspects {
		switch {
		case s.State == live.Alarming:
			known[s.Finding] = string(report.LiveLeak)
		case s.State == live.Suspected && !ended:
			known[s.Finding] = string(report.LiveSuspected)
		}
	}
	return func(f *diff.Finding) string {
		if f.Verdict != diff.Leak || ended {
			return known[f]
		}
		return cmp.Or(known[f], string(diff.Inconclusive)) // the looks have not confirmed the leak yet
	}
}

// sort orders the sites. The selected site stays selected; if it is gone, the first is selected.
func (m *model) sort() {
	if m.s.Result == nil {
		m.s.Sites, m.s.Cursor, m.s.Opened = nil, 0, false
		return
	}
	var chosen string
	if m.s.Cursor < len(m.s.Sites) {
		chosen = name(m.s.Sites[m.s.Cursor])
	}
	m.s.Sites = report.ScreenSites(m.s.Result, m.s.By, m.s.State)
	at := slices.IndexFunc(m.s.Sites, func(f *diff.Finding) bool { return name(f) == chosen })
	m.s.Cursor, m.s.Opened = max(0, at), m.s.Opened && at >= 0
	m.s.Scroll(0)
}

// name identifies a site within a run.
func name(f *diff.Finding) string {
	print := baseline.Fingerprint(f.Rows[0])
	if f.Child != nil {
		print += " " + f.Child.Role
	}
	return print
}

// key handles a key.
func (m model) key(key string) (tea.Model, tea.Cmd) {
	if !m.writing {
		m.s.Said = ""
	}
	page := max(1, m.s.Height/2)
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "ctrl+z":
		return m, tea.Suspend
	case "esc", "backspace", "left":
		m.s.Opened = false
	case "enter", "right":
		m.s.Opened, m.s.Top = len(m.s.Sites) > 0, 0
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-page)
	case "pgdown", "space":
		m.move(page)
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	case "s":
		m.s.By = m.s.By.Next()
		m.sort()
		m.s.Cursor, m.s.Opened = 0, false
	case "n":
		if m.look != nil && len(m.look.Ranks) > 1 {
			m.rank = (m.rank + 1) % len(m.look.Ranks)
			m.s.Sites, m.s.Cursor, m.s.Opened = nil, 0, false
			m.show()
		}
	case "r":
		if m.s.Result != nil && !m.writing {
			m.s.Said, m.writing = "writing the report …", true
			return m, m.report
		}
	}
	return m, nil
}

func (m model) report() tea.Msg {
	path, err := m.o.Report()
	if err != nil {
		return reported(err.Error())
	}
	return reported("wrote " + path)
}

// move moves up or down, in the list or in the details of a site.
func (m *model) move(by int) {
	if m.s.Opened {
		m.s.Scroll(by)
		return
	}
	m.s.Cursor = max(0, min(m.s.Cursor+by, len(m.s.Sites)-1))
}

// View implements tea.Model.
func (m model) View() tea.View {
	m.s.Color, m.s.Here, m.s.Now = m.o.Color, m.o.Here, time.Now()
	text := "waiting for the first snapshot · q quit"
	if m.s.Run != nil {
		text = strings.Join(m.s.Lines(), "\n")
	}
	v := tea.NewView(text)
	v.AltScreen = true
	return v
}
