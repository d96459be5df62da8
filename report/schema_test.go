package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// described are the meanings of keys that their names do not tell.
var described = map[string]string{
	"schema_version":             "grows when a key changes its meaning or goes away; new keys do not change it",
	"summary":                    "the report's first sentence",
	"rule":                       "how leaks were told: trend or handbook",
	"intermediate_snapshots":     "snapshots between the first and the last",
	"growth":                     "what is held more, or less, in the last snapshot than in the first",
	"totals":                     "all sites, each in one of the groups",
	"findings":                   "leaks, then inconclusive, then bounded; larger growth first",
	"rows":                       "every site that changed, largest growth first",
	"frames":                     "innermost call first",
	"headline":                   "the frame to look at; null where none is the user's",
	"stack_hash":                 "16 hexadecimal digits, equal in every process that runs the same code",
	"stacks":                     "all that leak together, where there are several",
	"born":                       "blocks of the last snapshot that the first lacks",
	"died":                       "blocks of the first snapshot that the last lacks",
	"estimated":                  "some steps or allocations were recorded, which stand for the others: counts and sizes are estimates",
	"smallest_leak_sample_bytes": "of a sampled profile: what comes in so many steps or seconds, in place of one block",
	"rate":                       "growth for one unit, with 95 % intervals; null between snapshots that cannot be compared",
	"runs_out":                   "when the device's limit is reached if growth goes on so",
	"beyond":                     "it is farther away than 100 times the length of the run: no step or time is given",
	"open":                       "high is farther away than 100 times the length of the run, and is cut to that",
	"of_process":                 "the limit is of all that the process may take",
	"owners":                     "classes of reference on the blocks: user, tape, grad, optim, cache, comm",
	"items_at_step":              "the step at which the items were counted, where that was before the snapshot",
	"holder":                     "what keeps the blocks alive, where a recorder found it",
	"evidence":                   "proof, strong or weak",
	"verdict":                    "leak, inconclusive, bounded or clean; of a gate that only a budget fails, over-budget",
	"budgets":                    "limits on memory that the gate was given, each with each device, process or role that it is for",
	"flag":                       "the flag that set the budget",
	"budget":                     "what it limits: live, peak, reserved or growth",
	"budget_state":               "broken, kept or unchecked",
	"allowed_bytes":              "the budget; of a share, that share of the limit",
	"over_bytes":                 "by how much it is broken",
	"declared":                   "what gathers up to a bound that is declared, and has not reached it",
	"sentence":                   "why the gate passes or fails",
	"undecided":                  "what grew, is in no baseline, and may yet turn out to leak",
	"held_by":                    "the holder, and the classes of reference on the blocks, in words",
	"cause_name":                 "what the likely cause is called; for what is undecided, its cause if it leaks",
	"cause_why":                  "what shows that it is the cause",
	"fix":                        "how to end it, one clause",
	"unexplained":                "by what a process grows that no stack explains, of each rank that has it",
	"entries":                    "of the baseline, those that let no leak pass",
	"state":                      "of a leak new, regressed, known or library; of an entry fixed, undecided, unused or expired",
	"library":                    "the known leak of a framework that it is",
	"fingerprint":                "the place of a leak over edits of lines, other checkouts, ranks and machines",
	"notes":                      "what a reader must know before trusting it",
	"known_leaks":                "known leaks of libraries, at the versions of the run, a sentence each",
	"not_seen":                   "what of the run no verdict speaks of, a clause each",
	"child":                      "the process of the command that leaks, where it is another than the one that was judged first",
	"children":                   "other processes of the command that leak, one of each kind",
	"processes":                  "those that grow and in which no recorded line explains it",
	"role":                       "what a person would call the process: loader worker 3, rank 1, or its script",
	"machine":                    "the name of the one that it ran on, of a run of several",
	"alike":                      "how many of its kind do the same",
	"of":                         "how many of its kind there are",
	"segments":                   "files of shared memory, named or not",
	"meter":                      "what grew by itself: pending, private, cached, fragmented, unsplit, or host, the memory of the process",
	"requested_bytes":            "as the program asked; bytes are as the allocator rounds",
}

type schema map[string]any

// schemaOf describes what encoding/json makes of a type. Objects are open, since new
// keys may come without a new schema version.
func schemaOf(t reflect.Type) schema {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Struct:
		if t.Name() == "Time" {
			return schema{"type": "string", "format": "date-time"}
		}
		properties, required := schema{}, []string{}
		fieldsOf(t, properties, &required)
		return schema{"type": "object", "properties": properties, "required": required}
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

func fieldsOf(t reflect.Type, properties schema, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			fieldsOf(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := schemaOf(f.Type)
		if text := described[name]; text != "" {
			one["description"] = text
		}
		if f.Type.Kind() == reflect.Pointer && options == "" {
			one["type"] = []string{one["type"].(string), "null"}
		}
		properties[name] = one
		if options == "" {
			*required = append(*required, name)
		}
	}
}

// faults lists where a value breaks a schema of the kind that schemaOf writes. A
// key that the schema does not know is one too, here: the schema is to have them all.
func faults(s map[string]any, v any, at string) []string {
	var out []string
	types, ok := s["type"].([]any)
	if !ok {
		types = []any{s["type"]}
	}
	kind := "null"
	switch v := v.(type) {
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
		if slices.Contains(types, any("integer")) && v == float64(int64(v)) {
			kind = "integer"
		}
	case []any:
		kind = "array"
		for i, item := range v {
			out = append(out, faults(s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		kind = "object"
		properties, _ := s["properties"].(map[string]any)
		for key, value := range v {
			if p, ok := properties[key].(map[string]any); ok {
				out = append(out, faults(p, value, at+"."+key)...)
			} else if more, ok := s["additionalProperties"].(map[string]any); ok {
				out = append(out, faults(more, value, at+"."+key)...)
			} else {
				out = append(out, at+"."+key+" is not in the schema")
			}
		}
		required, _ := s["required"].([]any)
		for _, key := range required {
			if _, ok := v[key.(string)]; !ok {
				out = append(out, at+"."+key.(string)+" is missing")
			}
		}
	}
	if !slices.Contains(types, any(kind)) {
		out = append(out, fmt.Sprintf("%s is of type %s, want %v", at, kind, types))
	}
	return out
}

// The schemas in docs are what users hold their scripts to: they change only where
// the types do, and every golden file obeys them.
func TestJSONSchemas(t *testing.T) {
	for _, c := range []struct {
		file, title string
		of          any
		goldens     []string
	}{
		{"diff.schema.json", "memdiag diff --format json", resultJSON{}, []string{"leak.json.golden", "hostile.json.golden", "empty.json.golden"}},
		{"gate.schema.json", "memdiag gate --json", gateJSON{}, []string{"gate.json.golden"}},
		{"changes.schema.json", "memdiag diff --at peak --format json", changesJSON{}, nil},
		{"show.schema.json", "memdiag show --format json", showJSON{}, []string{"show.json.golden", "showempty.json.golden"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			want := schemaOf(reflect.TypeOf(c.of))
			want["$schema"], want["title"] = "https://json-schema.org/draft/2020-12/schema", c.title
			text, err := json.MarshalIndent(want, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, '\n')
			path := filepath.Join("..", "docs", "schema", c.file)
			if *update {
				if err := os.WriteFile(path, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, text) {
				t.Errorf("%s is not what is written; run go test ./report -update", path)
			}
			var read map[string]any
			if err := json.Unmarshal(got, &read); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.goldens {
				example, err := os.ReadFile(filepath.Join("testdata", name))
				if err != nil {
					t.Fatal(err)
				}
				var value any
				if err := json.Unmarshal(example, &value); err != nil {
					t.Fatal(err)
				}
				for _, fault := range faults(read, value, "$") {
					t.Errorf("%s: %s", name, fault)
				}
			}
		})
	}
}

func TestSchemaFaultsAreFound(t *testing.T) {
	s := map[string]any{
		"type": "object", "required": []any{"a"},
		"properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}},
	}
	for text, want := range map[string]string{
		`{"a": 1, "b": ["x"]}`: "",
		`{"b": []}`:            "$.a is missing",
		`{"a": 1.5}`:           "$.a is of type number, want [integer]",
		`{"a": 1, "b": [2]}`:   "$.b[0] is of type number, want [string]",
		`{"a": 1, "c": 2}`:     "$.c is not in the schema",
		`[]`:                   "$ is of type array, want [object]",
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(faults(s, v, "$"), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
