package clickhouse_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/fleet/clickhouse"
)

func nothing(string) string { return "" }

func TestAddressesAreShownWithoutTheirPassword(t *testing.T) {
	for text, want := range map[string]string{
		"clickhouse://db":  "clickhouse://db:8123/memdiag",
		"clickhouse://db/": "clickhouse://db:8123/memdiag",
		"clickhouse://me:s%40cret@db:99/fleet?secure=true":                "clickhouse://me@db:99/fleet?secure=true",
		"clickhouse://db/fleet?secure=true":                               "clickhouse://db:8443/fleet?secure=true",
		"clickhouse://a,b:1,[::1]:2/f?cluster=my-three":                   "clickhouse://a:8123,b:1,[::1]:2/f?cluster=my-three",
		"clickhouse://[::1]/f":                                            "clickhouse://[::1]:8123/f",
		"http://db":                                                       "",
		"clickhouse://":                                                   "",
		"clickhouse:///f":                                                 "",
		"clickhouse://db:/f":                                              "",
		"clickhouse://db:x/f":                                             "",
		"clickhouse://secret@a b/f":                                       "",
		"clickhouse://me:secret%@db/f":                                    "",
		"clickhouse://a,b/f":                                              "",
		"clickhouse://me:secret@db/f'; DROP TABLE runs; --":               "",
		"clickhouse://me:secret@db/f?cluster=a'b":                         "",
		"clickhouse://me:secret@db/f?password=secret":                     "",
		"clickhouse://me:secret@db/f?secure=perhaps":                      "",
		"clickhouse://me:secret@db/f?%":                                   "",
		"clickhouse://me:secret@db:8123:9000/f":                           "",
		"clickhouse://" + strings.Repeat("a", 10) + "/f/g":                "",
		"clickhouse://db/" + strings.Repeat("a", 65) + "?cluster=a&a=b&c": "",
	} {
		a, err := clickhouse.Parse(text, nothing)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is %s", text, a)
		case want == "" && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v", text, err)
		case want != "" && (err != nil || a.String() != want):
			t.Errorf("%s is %v (%v), not %s", text, a, err, want)
		}
	}
}
