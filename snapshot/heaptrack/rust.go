package heaptrack

import "strings"

// escapes are what the older form of Rust's symbols writes for characters that no symbol has.
var escapes = strings.NewReplacer(
	"_$LT$", "<", "_$RF$", "&", "_$u7b$", "{", "$LT$", "<", "$GT$", ">", "$RF$", "&", "$BP$", "*", "$C$", ",", "$LP$", "(", "$RP$", ")",
	"$u20$", " ", "$u27$", "'", "$u5b$", "[", "$u5d$", "]", "$u7b$", "{", "$u7d$", "}", "..", "::")

// rusts is a function as Rust writes it, "<T as core::ops::Index>::index" of
// "_$LT$T$u20$as$u20$core..ops..Index$GT$::index::h041d071a1e6c1400": the older form of its
// symbols, which heaptrack takes for one of C++'s, ends in a hash that differs from build to
// build. Any other name stays.
func rusts(function string) string {
	const digits = 16
	at := len(function) - digits
	name, ok := strings.CutSuffix(function[:max(at, 0)], "::h")
	if !ok || strings.Trim(function[at:], "0123456789abcdef") != "" {
		return function
	}
	return escapes.Replace(name)
}
