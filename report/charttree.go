package report

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// mostRoles is how many roles a picture of the command's processes distinguishes.
const mostRoles = 12

// aboutOthers reports whether the report's first sentence is about other processes than the recorded one.
func aboutOthers(r *diff.Result) bool {
	return r.Leaks() == 0 && r.Unexplained() == nil && len(r.Children)+len(r.Unaccounted()) > 0
}

// newTreeChart draws the command's processes by role; nil unless a second process matters.
func newTreeChart(r *diff.Result, o PlotOptions, marks int) *chart {
	seconds, roles := r.Roles(mostRoles)
	if roles == nil {
		return nil
	}
	unit, size, x := drawn(diff.Axis{Unit: diff.Second, X: seconds})
	all := make([]snapshot.Bytes, len(x))
	for _, role := range roles {
		for i, v := range role.Bytes {
			all[i] += snapshot.Bytes(v)
		}
	}
	c := &chart{title: Printable(o.Title), axis: string(unit), size: size}
	if c.title == "" {
		c.title = Headline(r)
	}
	keep := highest(all, marks)
	for _, i := range keep {
		c.x = append(c.x, x[i])
		c.top = max(c.top, 1.06*float64(all[i]))
	}
	c.top, c.warm = max(c.top, 1), c.x[0]
	grown, others := 0, 0
	for n, role := range roles {
		b := band{name: roleName(role), notes: []string{"up to " + snapshot.FormatBytes(slices.Max(role.Bytes))}, colour: restColour, strong: role.Leak}
		switch {
		case role.Rate.Unit != "":
			verdict, one := "grows", ""
			if role.Most > 1 {
				one = " in one"
			}
			if role.Leak {
				verdict = string(diff.Leak)
			}
			b.colour, b.notes = pick(leakColours[:], grown), []string{verdict + ": " + bytesRate(role.Rate) + one}
			grown++
		case n > 0:
			b.colour = pick(treeColours[:], others)
			others++
		}
		for _, i := range keep {
			b.y = append(b.y, role.Bytes[i])
		}
		c.bands = append(c.bands, b)
	}
	about := "private memory of all processes by role"
	if roles[len(roles)-1].Most == 0 {
		about += ", and shared memory"
	}
	c.subtitle = fmt.Sprintf("%s · %ss 0 to %s", about, c.axis, wholeNumber(c.x[len(c.x)-1]))
	return c
}

// treeColours are for roles that do not grow: none resembles those of leaks.
var treeColours = [...]color.NRGBA{rgb(0x56b4e9), rgb(0x6a51a3), rgb(0x8c6d31), rgb(0x117733), rgb(0x88ccee), rgb(0xaa99cc), rgb(0xbbaa77), rgb(0x77aa88)}

func pick(of []color.NRGBA, n int) color.NRGBA { return of[n%len(of)] }

// roleName is "loader worker × 8".
func roleName(role diff.RoleSeries) string {
	if role.Most > 1 {
		return fmt.Sprintf("%s × %d", brief(role.Name), role.Most)
	}
	return brief(role.Name)
}
