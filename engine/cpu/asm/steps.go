package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

const (
	momentumPromise = `momentumAVX2 sets v[i] = keep*v[i] + grad[i] and p[i] -= rate*v[i] for i < n, every
operation rounded. n is at least 1.`

	adamPromise = `adamAVX2 sets, for i < n, every operation rounded:
m[i] = keepMean*m[i] + takeMean*grad[i]
v[i] = keepSquare*v[i] + takeSquare*(grad[i]*grad[i])
p[i] = keep*p[i] - move*(m[i]/(sqrt(v[i])*root+epsilon))
n is at least 1.`
)

func steps(ctx *build.Context) {
	l := newLanes(ctx, "stepMask")
	p, g := stream{"p", true, true}, stream{"grad", true, false}
	m, v := stream{"m", true, true}, stream{"v", true, true}

	l.loop("momentumAVX2", "keep, rate float32", momentumPromise, []stream{p, g, v},
		func() {
			l.scalar("keep", reg.Y8)
			l.scalar("rate", reg.Y9)
		},
		func(r []reg.VecPhysical) {
			p, g, v, move := r[0], r[1], r[2], reg.Y3
			l.VMULPS(reg.Y8, v, v)
			l.VADDPS(g, v, v)
			l.VMULPS(reg.Y9, v, move)
			l.VSUBPS(move, p, p)
		})

	names := []string{"keepMean", "takeMean", "keepSquare", "takeSquare", "keep", "move", "root", "epsilon"}
	scalars := registersY()[6:14]
	l.loop("adamAVX2", "keepMean, takeMean, keepSquare, takeSquare, keep, move, root, epsilon float32", adamPromise, []stream{p, g, m, v},
		func() {
			for i, name := range names {
				l.scalar(name, scalars[i])
			}
		},
		func(r []reg.VecPhysical) {
			p, g, m, v, t := r[0], r[1], r[2], r[3], reg.Y4
			l.VMULPS(scalars[0], m, m)
			l.VMULPS(scalars[1], g, t)
			l.VADDPS(t, m, m)
			l.VMULPS(g, g, t)
			l.VMULPS(scalars[2], v, v)
			l.VMULPS(scalars[3], t, t)
			l.VADDPS(t, v, v)
			l.VSQRTPS(v, t)
			l.VMULPS(scalars[6], t, t)
			l.VADDPS(scalars[7], t, t)
			l.VDIVPS(t, m, t)
			l.VMULPS(scalars[5], t, t)
			l.VMULPS(scalars[4], p, p)
			l.VSUBPS(t, p, p)
		})
}
