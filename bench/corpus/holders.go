package corpus

import "strings"

// holders are the fields that keep what a marked line leaks, read from the programs in
// engine/workload. Lines that are missing leak what no field of the program leads to:
// gradients and nodes that only the tape knows.
var holders = map[string]string{
	"L01":       "total",
	"L02":       "memory",
	"L03":       "state",
	"L09":       "means",
	"L10":       "hooks",
	"L11/batch": "copies",
	"L11/epoch": "copies",
	"L11/eval":  "copies",
	"L12":       "area",
	"L13":       "outputs",
	"L14":       "mean",
	"L15":       "leaves",
	"L16":       "calls",
	"L17":       "again",
	"L18":       "answers",
	"L19":       "byLength",
	"L20":       "scores",
	"L21":       "errors",
	"L22":       "gathered",
	"L23":       "staged",
	"L24":       "copies",
	"L25":       "made",
	"L26":       "queue",
	"L27":       "descent",
	"L28":       "contexts",
	"L29":       "borrowed",
	"L30":       "features",
	"L31":       "cache",
	"L32":       "buffer",
	"L33":       "entries",
	"L34":       "entries",
	"L35":       "entries",
	"L36":       "entries",
	"L37":       "logged",
	"L38":       "buffer",
}

// heldBy reports whether a path leads through a field: "trainer.hooks[].means" through
// "hooks" and "means".
func heldBy(path, field string) bool {
	for part := range strings.SplitSeq(path, ".") {
		name, _, _ := strings.Cut(part, "[")
		if name == field {
			return true
		}
	}
	return false
}
