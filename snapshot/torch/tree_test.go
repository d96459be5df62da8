package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// A tree is what a pickle or JSON text means, whole: nil, bool, *big.Int, string, *list,
// *dict, *tuple, global or opaque.
type (
	list struct{ items []any }
	dict struct {
		keys   []any
		values []any
		class  bool // an instance of a class, such as OrderedDict
	}
	tuple  struct{ items []any } // of two ints
	opaque struct{}
	global string
)

// get returns the last value of a key, as Python would.
func (d *dict) get(key string) any {
	for i := len(d.keys) - 1; i >= 0; i-- {
		if d.keys[i] == key {
			return d.values[i]
		}
	}
	return nil
}

// set refuses the keys that Python refuses.
func (d *dict) set(key, v any) {
	switch key.(type) {
	case *list, *dict:
		panic(errTree)
	}
	for i := range d.keys {
		if d.keys[i] == key && key != any(opaque{}) {
			d.values[i] = v
			return
		}
	}
	d.keys = append(d.keys, key)
	d.values = append(d.values, v)
}

var errTree = errors.New("the twin cannot read this")

// jsonTree is json.Unmarshal into the same kinds of value.
func jsonTree(b []byte) (any, error) {
	b = bytes.ReplaceAll(b, []byte(" NaN"), []byte(" 0.5"))
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var value func() (any, error)
	value = func() (any, error) {
		tok, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch v := tok.(type) {
		case json.Number:
			if n, ok := new(big.Int).SetString(string(v), 10); ok {
				return n, nil
			}
			return opaque{}, nil
		case json.Delim:
			if v == '[' {
				l := &list{}
				for d.More() {
					item, err := value()
					if err != nil {
						return nil, err
					}
					l.items = append(l.items, item)
				}
				_, err := d.Token()
				return l, err
			}
			m := &dict{}
			for d.More() {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				item, err := value()
				if err != nil {
					return nil, err
				}
				m.set(key, item)
			}
			_, err := d.Token()
			return m, err
		case string, bool, nil:
			return v, nil
		default:
			return nil, fmt.Errorf("token %v", tok)
		}
	}
	root, err := value()
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errTree
	}
	return root, nil
}
