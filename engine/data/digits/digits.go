// Package digits is a real data set: 1797 handwritten digits of 8 by 8 pixels, by
// 13 people, the test set of "Optical Recognition of Handwritten Digits" (Alpaydin
// and Kaynak 1998). LICENSE names its source and terms, make.py how it was packed.
package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"

	"github.com/memdiag/memdiag/engine/data"
)

// Sizes of the data set.
const (
	Images  = 1797
	Pixels  = 64 // of an image, row by row
	Classes = 10
)

// heldOut is of how many images one is held out.
const heldOut = 5

// Set is images with their labels. Each example is an image, float32 [64] from 0
// for paper to 1 for ink, and a label, int32, from 0 to 9.
type Set struct {
	images []float32
	labels []int32
}

var _ data.Dataset = (*Set)(nil)

// packed is all labels, then all values of the first pixel, of the second and so
// on, a byte each; gzip.
//
//go:embed digits.bin.gz
var packed []byte

// Load returns 1438 images to train on and 359 held out: every fifth. Those are
// other images by the same people, so that accuracy on them says nothing of how
// the digits of a stranger would be read.
func Load() (training, test *Set, err error) {
	columns, err := unpack()
	if err != nil {
		return nil, nil, fmt.Errorf("digits: %w", err)
	}
	training, test = &Set{}, &Set{}
	for i := range Images {
		s := training
		if i%heldOut == heldOut-1 {
			s = test
		}
		s.labels = append(s.labels, int32(columns[i]))
		for pixel := range Pixels {
			s.images = append(s.images, float32(columns[(1+pixel)*Images+i])/16)
		}
	}
	return training, test, nil
}

func unpack() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	columns := make([]byte, Images*(1+Pixels))
	_, err = io.ReadFull(r, columns)
	return columns, err
}

// Len counts the images.
func (s *Set) Len() int { return len(s.labels) }

// Example returns an image and its label; see Set.
func (s *Set) Example(i int) ([]data.Array, error) {
	return []data.Array{
		{Shape: []int{Pixels}, Floats: s.images[i*Pixels : (i+1)*Pixels]},
		{Ints: s.labels[i : i+1]},
	}, nil
}
