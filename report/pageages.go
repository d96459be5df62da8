package report

import (
	"fmt"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// agesView is a histogram of the live bytes by birth.
type agesView struct {
	Width, Height int
	Columns       []ageColumn
	From, To      string
	Unknown       string
	Caption       string
	Unseen        string // the meaning of hatched bars; "" if there are none
}

// leakHeight bounds the histogram's height: this many times the highest column of leaks, so that a small leak is visible beside the
// weights of the first step.
const leakHeight = 4

// Hatches are the classes that are drawn hatched if they are estimated.
func (*agesView) Hatches() []string { return []string{"other", "leak"} }

// ageColumn is what was born in a few steps, lowest bar first.
type ageColumn struct {
	X, Width float64
	Bars     []ageBar
	Cut      bool // whether it is higher than the picture
	Title    string
}

type ageBar struct {
	Class     string
	Y, Height float64
}

// ageBins is how many columns the histogram has at most. Each covers a whole number of steps; otherwise some would be higher without a
// reason.
const ageBins = 40

// agesViewOf is nil if the snapshot has no births. The series is as in TextOptions.
func agesViewOf(s *snapshot.Snapshot, leaks leakSites, run *diff.Series) *agesView {
	unseen := diff.UnseenBirths(s, run)
	a, ok := agesOf(s, unseen)
	if !ok {
		return nil
	}
	births := s.Blocks.BirthStep
	switch a.unit {
	case "time":
		births = s.Blocks.BirthTime
	case "event":
		births = s.Blocks.BirthEvent
	}
	stretch := max((a.to-a.from+ageBins-1)/ageBins, 1)
	bins := int((a.to - a.from + stretch - 1) / stretch)
	leaking := leaks.rows(s)
	// The classes of bars, lowest first: leaks, which stand on the ground, then the rest; each as observed and as estimated.
	classes := [...]string{"leak", "leak unseen", "other", "other unseen"}
	held := make([][len(classes)]snapshot.Bytes, bins)
	const estimated, other = 1, 2
	for i, st := range s.Blocks.State {
		if st != snapshot.Live || !hasBirth(&s.Blocks, i) {
			continue
		}
		bin, class := min(max((births[i]-a.from)/stretch, 0), int64(bins-1)), other
		if leaking[i] {
			class = 0
		}
		held[bin][class] += diff.SeenOf(&s.Blocks, i).Bytes
	}
	for i := range unseen {
		u, class := &unseen[i], other+estimated
		if leaks.has(u.Device, u.Hash) {
			class = estimated
		}
		for bin := range int64(bins) {
			held[bin][class] += u.Within(a.from+bin*stretch, a.from+(bin+1)*stretch).Bytes
		}
	}
	most, highest := snapshot.Bytes(1), snapshot.Bytes(0) // of everything, and of leaks
	for _, h := range held {
		most, highest = max(most, h[0]+h[1]+h[2]+h[3]), max(highest, h[0]+h[estimated])
	}
	top := most
	if highest > 0 {
		top = min(most, leakHeight*highest)
	}
	v := &agesView{Width: 800, Height: 120, From: a.unit + " " + grouped(a.from), To: a.unit + " " + grouped(a.to)}
	if a.unit == "time" {
		v.From, v.To = "start of the history", duration(time.Duration(a.to-a.from)*time.Microsecond)+" later"
	}
	if a.unknown.Blocks > 0 {
		v.Unknown = fmt.Sprintf("%s in %s are older than the history, or were not recorded", a.unknown.Bytes, count(a.unknown.Blocks, "block"))
	}
	if a.guessed() {
		v.Unseen = "Hatched is " + unseenText(run)
	}
	width := float64(v.Width) / float64(bins)
	for i, h := range held {
		leaking, guessed := h[0]+h[estimated], h[estimated]+h[other+estimated]
		all := leaking + h[other] + h[other+estimated]
		if all == 0 {
			continue
		}
		c := ageColumn{X: float64(i)*width + 0.5, Width: width - 1}
		y := float64(v.Height)
		for class, b := range h {
			if b == 0 {
				continue
			}
			height := min(float64(b)/float64(top)*float64(v.Height), y)
			y -= height
			c.Bars = append(c.Bars, ageBar{classes[class], y, height})
		}
		c.Cut = all > top
		c.Title = all.String() + " live"
		if leaking > 0 {
			c.Title += ", " + leaking.String() + " of them leaking"
		}
		if guessed > 0 {
			c.Title += ", " + guessed.String() + " estimated"
		}
		v.Columns = append(v.Columns, c)
	}
	each := count(stretch, a.unit)
	if a.unit == "time" {
		each = duration(time.Duration(stretch) * time.Microsecond)
	}
	v.Caption = fmt.Sprintf("Live bytes at the end by the age of their blocks: columns of %s, the highest %s", each, most)
	if top < most {
		v.Caption += fmt.Sprintf("; those above %s are cut", top)
	}
	return v
}
