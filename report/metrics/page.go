package metrics

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Text writes metrics in Prometheus' text format, which node_exporter also reads from files.
func Text(w io.Writer, from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err != nil {
		return err
	}
	to := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := to.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// Page serves the metrics of the last look over HTTP, as Prometheus' text or as OpenMetrics, as requested. It never waits for a look in
// progress. The zero value has no metrics.
type Page struct {
	last atomic.Pointer[[]*dto.MetricFamily]
}

// Set replaces what is served.
func (p *Page) Set(from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err == nil {
		p.last.Store(&families)
	}
	return err
}

// Families are the metrics that are served; nil if none were set.
func (p *Page) Families() []*dto.MetricFamily {
	if families := p.last.Load(); families != nil {
		return *families
	}
	return nil
}

// atOnce is how many requests are answered concurrently. A page is small, and nobody needs more.
const atOnce = 8

// Handler answers requests for the page.
func (p *Page) Handler() http.Handler {
	last := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return p.Families(), nil
	})
	return promhttp.HandlerFor(last, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: atOnce})
}
