// Package screen shows a run that is watched on a whole terminal.
package screen

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/watch"
)

// Options are how the screen is drawn, and what its keys do.
type Options struct {
	In    io.Reader
	Out   io.Writer
	Color bool
	Here  report.Folder
	// Report writes a report of the run, and says where.
	Report func(*diff.Result) (string, error)
}

// Show draws each look that next returns, until the user quits, next returns an error, or ctx ends. What next says of the run is
// in events. It returns next's error; nil if the user quit. After the last look, for which next returns io.EOF, the screen
// stays.
func Show(ctx context.Context, o Options, next func(context.Context) (look *watch.Look, events []string, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := tea.NewProgram(model{o: o}, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	failed := make(chan error, 1)
	go func() {
		for {
			look, events, err := next(ctx)
			if err != nil {
				failed <- err
				if !errors.Is(err, io.EOF) {
					p.Quit()
				}
				return
			}
			p.Send(looked{look, events})
		}
	}()
	_, err := p.Run()
	cancel()
	select {
	case err := <-failed:
		if !errors.Is(err, io.EOF) {
			return err
		}
	case <-time.After(time.Second): // a look is under way, which the user does not wait for
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// looked is a look with what it shows that is new; said is what a key did; second has the clock go on.
type (
	looked struct {
		*watch.Look
		events []string
	}
	said   string
	second struct{}
)

// model is the screen and what it is of.
type model struct {
	o     Options
	s     report.Screen
	ranks []watch.Rank
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
	case second:
		return m, tick
	case said:
		m.s.Said = string(message)
	case looked:
		m.take(message)
	case tea.KeyPressMsg:
		return m.key(message.String())
	}
	return m, nil
}

// take shows a look, with the site that was chosen where it is now.
func (m *model) take(l looked) {
	m.s.Events = append(m.s.Events, l.events...)
	m.s.Events = m.s.Events[max(0, len(m.s.Events)-100):]
	m.ranks = l.Ranks
	rank := &l.Ranks[0]
	m.s.Run, m.s.Result = rank.Run, rank.Result
	states := make(map[*diff.Finding]string)
	for _, s := range rank.Suspects {
		switch s.State {
		case live.Alarming:
			states[s.Finding] = string(report.LiveLeak)
		case live.Suspected:
			states[s.Finding] = string(report.LiveSuspected)
		}
	}
	m.s.State = func(f *diff.Finding) string {
		if state := states[f]; state != "" || f.Verdict != diff.Leak {
			return state
		}
		return string(diff.Inconclusive) // the beginning is not over
	}
	m.sort()
}

func (m *model) sort() {
	if m.s.Result == nil {
		return
	}
	var chosen string
	if m.s.Cursor < len(m.s.Sites) {
		chosen = m.s.Sites[m.s.Cursor].Rows[0].Hash.String()
	}
	m.s.Sites = report.ScreenSites(m.s.Result, m.s.By, m.s.State)
	at := slices.IndexFunc(m.s.Sites, func(f *diff.Finding) bool { return f.Rows[0].Hash.String() == chosen })
	m.s.Cursor = max(0, at)
}

// key does what a key is for.
func (m model) key(name string) (tea.Model, tea.Cmd) {
	m.s.Said = ""
	page := max(1, m.s.Height/2)
	switch name {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "esc", "backspace", "left":
		m.s.Opened = false
	case "enter", "right":
		m.s.Opened = len(m.s.Sites) > 0
	case "up", "k":
		m.s.Cursor--
	case "down", "j":
		m.s.Cursor++
	case "pgup":
		m.s.Cursor -= page
	case "pgdown":
		m.s.Cursor += page
	case "home", "g":
		m.s.Cursor = 0
	case "end", "G":
		m.s.Cursor = len(m.s.Sites)
	case "s":
		m.s.By = m.s.By.Next()
		m.s.Cursor = 0
		m.sort()
		m.s.Cursor = 0
	case "r":
		if r := m.s.Result; r != nil {
			return m, func() tea.Msg {
				path, err := m.o.Report(r)
				if err != nil {
					return said(err.Error())
				}
				return said("wrote " + path)
			}
		}
	}
	m.s.Cursor = max(0, min(m.s.Cursor, len(m.s.Sites)-1))
	return m, nil
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
