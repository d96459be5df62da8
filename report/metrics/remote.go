package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Series are metrics encoded for Prometheus' remote write 1.0: a WriteRequest in Protocol Buffers. See
// https://prometheus.io/docs/specs/prw/remote_write_spec/; all receivers accept it.
type Series struct{ message []byte }

// Fields of the messages WriteRequest, TimeSeries, Label and Sample.
const (
	seriesField               protowire.Number = 1
	labelField, sampleField   protowire.Number = 1, 2
	nameField, valueField     protowire.Number = 1, 2
	numberField, momentsField protowire.Number = 1, 2
)

// SeriesOf encodes gauges and counters as samples at a time.
func SeriesOf(families []*dto.MetricFamily, at time.Time) Series {
	var s Series
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := []*dto.LabelPair{pair("__name__", family.GetName())}
			labels = append(labels, m.GetLabel()...)
			labels = slices.DeleteFunc(labels, func(l *dto.LabelPair) bool { return l.GetValue() == "" }) // an empty value means no label
			slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
			var one []byte
			for _, l := range labels {
				one = embed(one, labelField, protowire.AppendString(protowire.AppendTag(
					protowire.AppendString(protowire.AppendTag(nil, nameField, protowire.BytesType), l.GetName()), valueField, protowire.BytesType), l.GetValue()))
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() // only one of them is set
			one = embed(one, sampleField, protowire.AppendVarint(protowire.AppendTag(
				protowire.AppendFixed64(protowire.AppendTag(nil, numberField, protowire.Fixed64Type), math.Float64bits(value)), momentsField, protowire.VarintType), uint64(at.UnixMilli()))) //nolint:gosec // an int64 as Protocol Buffers have it
			s.message = embed(s.message, seriesField, one)
		}
	}
	return s
}

// embed appends a message as a field of another.
func embed(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// SizeVT and MarshalToSizedBufferVT are the methods that the remote write client calls on a message.
func (s Series) SizeVT() int { return len(s.message) }

// MarshalToSizedBufferVT fills the end of a buffer.
func (s Series) MarshalToSizedBufferVT(to []byte) (int, error) {
	if len(to) < len(s.message) {
		return 0, fmt.Errorf("a buffer of %d bytes for a message of %d", len(to), len(s.message))
	}
	return copy(to[len(to)-len(s.message):], s.message), nil
}
