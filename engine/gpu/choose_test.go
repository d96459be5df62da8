package gpu

import (
	"errors"
	"testing"
)

func TestADeviceIsChosenByPlaceOrName(t *testing.T) {
	device := func(name string, kind uint32, unusable error) *physicalDevice {
		p := &physicalDevice{unusable: unusable}
		copy(p.properties.name[:], name)
		p.properties.deviceType = kind
		return p
	}
	broken := &Unusable{Reason: "it has no queue for kernels"}
	const integrated, discrete, software = 1, 2, 4
	for _, c := range []struct{ name, which, want, refused string }{
		{"the best without a choice", "", "NVIDIA H200", ""},
		{"by place in the order of the list", "2", "llvmpipe", ""},
		{"by a part of the name, in any case", "RADEON", "AMD Radeon", ""},
		{"digits that are no place, but in a name", "200", "NVIDIA H200", ""},
		{"a place that no device has", "4", "", `no device is "4", of 4`},
		{"a name that no device has", "arc", "", `no device is "arc", of 4`},
		{"a place before the first", "-1", "", `no device is "-1", of 4`},
		{"one that cannot be used", "old", "", "Old card cannot be used: it has no queue for kernels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := choose([]*physicalDevice{
				device("llvmpipe", software, nil), device("Old card", discrete, broken), device("AMD Radeon", integrated, nil), device("NVIDIA H200", discrete, nil),
			}, c.which)
			if c.refused != "" {
				if u, ok := errors.AsType[*Unusable](err); !ok || u.Reason != c.refused || u.Hint() == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := gostring(p.properties.name[:]); got != c.want {
				t.Errorf("chose %s, want %s", got, c.want)
			}
		})
	}
}

func TestTilesAreForRealDevicesThatRunThem(t *testing.T) {
	const discrete, software = 2, 4
	for _, c := range []struct {
		name        string
		kind        uint32
		invocations uint32
		want        product
	}{
		{"a real device", discrete, 1024, tiled()},
		{"one whose groups are too small", discrete, 128, direct()},
		{"a software driver, whatever it allows", software, 1024, direct()},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &physicalDevice{}
			p.properties.deviceType, p.properties.limits.maxGroupInvocations = c.kind, c.invocations
			if got := productOf(&Device{physical: p}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
