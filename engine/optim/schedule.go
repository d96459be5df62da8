package optim

import "math"

// Schedules are factors of a learning rate, to be multiplied as needed:
//
//	o.Rate = 3e-4 * optim.Warmup(step, 100) * optim.Cosine(step, 5000)

// Warmup rises evenly from 1/steps at step 0 to 1 at the last of so many steps,
// and stays there. Without steps it is 1.
func Warmup(step, steps int) float32 {
	if step+1 >= steps {
		return 1
	}
	return float32(step+1) / float32(steps)
}

// Cosine falls from 1 at step 0 to 0 at step total along half a wave, and stays
// there (Loshchilov and Hutter 2017).
func Cosine(step, total int) float32 {
	if step >= total {
		return 0
	}
	return float32(1+math.Cos(math.Pi*float64(step)/float64(total))) / 2
}

// Stairs is factor to the count of whole runs of so many steps that are over.
// every is at least 1.
func Stairs(step, every int, factor float32) float32 {
	return float32(math.Pow(float64(factor), float64(step/every)))
}
