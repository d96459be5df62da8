package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// demandText is a clause on how a device's peak depends on the size of the input.
func demandText(d *diff.Demand) string {
	text := "peak by input, " + deviceName(d.Device)
	if d.Phase != "" {
		text += ", in " + brief(d.Phase)
	}
	of := count(int64(d.Sizes), "size")
	if d.Fitted < d.Sizes {
		of = fmt.Sprintf("the largest %d of %s that", d.Fitted, of)
	}
	from := fmt.Sprintf("%s reached a new peak, %s to %s", of, inputText(d.Smallest), inputText(d.Largest))
	if d.Why != "" {
		return fmt.Sprintf("%s: inconclusive, %s (%s)", text, d.Why, from)
	}
	parts := []string{glue(size(d.Fixed)) + " fixed"}
	if d.Sample > 0 {
		parts = append(parts, glue(size(d.Sample))+" per sample")
	}
	if d.Token > 0 {
		parts = append(parts, glue(size(d.Token))+" per token")
	}
	text += fmt.Sprintf(": %s (%s; off by up to %.1f %%); %s would need %s", strings.Join(parts, ", "), from, 100*d.Off, inputText(d.Next), glue(d.Need.String()))
	if d.NeedOff > 0 {
		text += glue(fmt.Sprintf(" ± %s", d.NeedOff))
	}
	if d.Fits > 0 {
		text += fmt.Sprintf(", and anything above %s does not fit in %s", inputText(diff.Input{Batch: d.Fits, Length: d.Largest.Length}), glue(d.Device.Limit.String()))
	}
	return text
}

func size(v float64) string { return snapshot.Bytes(v).String() }

// inputText is "batch 32", "batch 32 of length 512", or "length 512".
func inputText(in diff.Input) string {
	switch {
	case in.Length == 0:
		return glue("batch " + grouped(in.Batch))
	case in.Batch == 0:
		return glue("length " + grouped(in.Length))
	}
	return glue("batch "+grouped(in.Batch)) + " of " + glue("length "+grouped(in.Length))
}

// demandJSON is how the peak of a device depends on the size of the input.
type demandJSON struct {
	Device      string  `json:"device"`
	Phase       string  `json:"phase,omitempty"`
	Sizes       int     `json:"sizes"`
	Why         string  `json:"inconclusive,omitempty"`
	Fixed       float64 `json:"fixed_bytes,omitempty"`
	Sample      float64 `json:"bytes_per_sample,omitempty"`
	Token       float64 `json:"bytes_per_token,omitempty"`
	Off         float64 `json:"largest_error_share,omitempty"`
	NextBatch   int64   `json:"next_batch,omitempty"`
	NextLength  int64   `json:"next_length,omitempty"`
	NextBytes   int64   `json:"next_bytes,omitempty"`
	NextOff     int64   `json:"next_bytes_error,omitempty"`
	FittingMost int64   `json:"largest_batch_that_may_fit,omitempty"`
}

func demandsOf(r *diff.Result) (out []demandJSON) {
	for _, d := range r.Demand() {
		out = append(out, demandJSON{
			deviceName(d.Device), d.Phase, d.Sizes, d.Why, d.Fixed, d.Sample, d.Token, d.Off, d.Next.Batch, d.Next.Length, int64(d.Need), int64(d.NeedOff), d.Fits,
		})
	}
	return out
}
