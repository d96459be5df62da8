package nn

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
)

// FeaturePyramid gives every level of a backbone's features what the coarser ones
// know (Lin et al. 2017): from the coarsest on, a level is its lateral projection
// plus the level above, upsampled; what comes out is smoothed.
type FeaturePyramid struct {
	Lateral []*Conv2d // 1x1, [width in], one a level, finest first
	Smooth  []*Conv2d // 3x3, [width width]
}

// NewFeaturePyramid draws the parameters for levels of these channels, finest
// first, that come out width channels wide.
func NewFeaturePyramid(o engine.Ops, r *engine.Random, width int, channels ...int) *FeaturePyramid {
	p := &FeaturePyramid{}
	for _, in := range channels {
		p.Lateral = append(p.Lateral, NewConv2d(o, r, in, width, engine.Square(1, 1, 0)))
		p.Smooth = append(p.Smooth, NewConv2d(o, r, width, width, engine.Square(3, 1, 1)))
	}
	return p
}

// Forward maps levels [n c h w], finest first and each half as high and wide as
// the one before, to as many [n width h w].
func (p *FeaturePyramid) Forward(o engine.Ops, levels []*engine.Tensor) []*engine.Tensor {
	if len(levels) != len(p.Lateral) {
		misuse("feature pyramid", fmt.Sprintf("%d levels are needed", len(p.Lateral)), levels...)
	}
	out := make([]*engine.Tensor, len(levels))
	var above *engine.Tensor
	for i := len(levels) - 1; i >= 0; i-- {
		merged := p.Lateral[i].Forward(o, levels[i])
		if above != nil {
			merged = o.Add(merged, engine.Upsample2x(o, above))
		}
		out[i], above = p.Smooth[i].Forward(o, merged), merged
	}
	return out
}

func (p *FeaturePyramid) parts() Parts {
	var parts Parts
	for i := range p.Lateral {
		parts = append(parts,
			Part{fmt.Sprintf("lateral.%d", i), p.Lateral[i]},
			Part{fmt.Sprintf("smooth.%d", i), p.Smooth[i]})
	}
	return parts
}

// Parameters lists those of each level, finest first.
func (p *FeaturePyramid) Parameters() []*engine.Tensor { return p.parts().Parameters() }

// State names those of each level, finest first.
func (p *FeaturePyramid) State() []engine.Named { return p.parts().State() }
