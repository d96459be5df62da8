// Package secret masks what looks like a secret in command lines, URLs and messages.
//
// A value is masked for the name that it is given (--token, HF_TOKEN=, "password":), for its
// place in a URL (user:password@, ?sig=) or for a shape that is known (hf_…, AKIA…). Both of a
// run that is recorded and of one that is read, equal commands become equal ones, and commands
// that differ in a secret alone do too. A secret without a name or a shape is not known to be
// one: memdiag record --no-command leaves the whole command out.
package secret

import (
	"regexp"
	"strings"
)

// Mask stands in the place of a secret.
const Mask = "***"

var (
	// named is a word of a command that gives a name its value: --token=x, HF_TOKEN=x, +hub.token=x, /token:x.
	named = regexp.MustCompile(`(?s)^([-+~/]{0,2}[\pL_][\pL\d_.\-]*)(:?=|:)(.*)$`)
	flag  = regexp.MustCompile(`^--?[\pL_][\pL\d_.\-]*$`)
	// dashedValue is after --password no flag of one letter, nor one of two dashes.
	dashedValue = regexp.MustCompile(`^-[^-].`)
	code        = regexp.MustCompile(`^-[A-Za-z]*[ce]$`) // sh -c, python -c, bash -lc, perl -e
	// account is the flag of curl and others for a name and a password.
	account     = regexp.MustCompile(`^(?:-u|-U|--user|--proxy-user)$`)
	accountWord = regexp.MustCompile(`(?s)^((?:-u|-U|--(?:proxy-)?user=)?[^-:=/\s][^:=/\s]*:)(.+)$`)
	userIDs     = regexp.MustCompile(`^(?:-u|-U|--user=)?[0-9]+:[0-9]+$`) // docker run --user 1000:1000
	numeric     = regexp.MustCompile(`^[0-9]*$`)
)

// Words are the words of a command, with its secrets masked. There are as many as before.
func Words(words []string) []string {
	if words == nil {
		return nil
	}
	masked := make([]string, len(words))
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		masked[i] = word(w, before)
	}
	return masked
}

// word masks one word of a command, which stands after another.
func word(w, before string) string {
	if c := classOf(before, false); flag.MatchString(before) && !strings.HasSuffix(w, ".py") && (!flag.MatchString(w) || c == strong && dashedValue.MatchString(w)) {
		if c > random && isSwitch(before) {
			c = random
		}
		if c.hides(w) {
			return Mask
		}
	}
	if before == "login" && looksRandom(w) {
		return Mask
	}
	if account.MatchString(before) || strings.HasPrefix(w, "-u") || strings.HasPrefix(w, "--user=") || strings.HasPrefix(w, "--proxy-user=") {
		if m := accountWord.FindStringSubmatch(w); m != nil && !userIDs.MatchString(w) {
			return m[1] + Mask
		}
	}
	// The whole value is one word, which may hold spaces, but in code.
	if m := named.FindStringSubmatch(w); m != nil && !code.MatchString(before) {
		if classOf(m[1], false).hides(m[3]) {
			return m[1] + m[2] + Mask
		}
	}
	return Text(w)
}

// Value is the value of a name, masked where the name says so or the value itself looks so.
func Value(name, value string) string {
	if classOf(name, false).hides(value) {
		return Mask
	}
	return Text(value)
}

// Text is a text with its secrets masked: a message, a URL, or code in a command.
func Text(text string) string {
	text = privateKey.ReplaceAllString(text, Mask)
	text = userInfo(text)
	text = pathSecret.ReplaceAllString(text, "${1}"+Mask)
	text = accounts.ReplaceAllStringFunc(text, func(s string) string {
		m := accounts.FindStringSubmatch(s)
		if numeric.MatchString(m[2]) && numeric.MatchString(m[3]) {
			return s
		}
		return m[1] + m[2] + ":" + Mask
	})
	text = header.ReplaceAllString(text, "${1}"+Mask)
	text = assignments(text)
	text = bearer.ReplaceAllString(text, "${1}"+Mask)
	return shapes(text)
}

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// pathSecret is a URL that whoever knows it may use.
	pathSecret = regexp.MustCompile(`(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot)[^\s"'<>?#]+`)
	// header is one of HTTP, whose value goes on to the end of a line or a quote.
	header = regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization\s*:\s*|\b(?:set-)?cookie\s*:\s*)[^\s"'][^\n"']*`)
	// accounts are the flags of account in code.
	accounts = regexp.MustCompile(`((?:^|[\s"'])(?:-u|-U|--user|--proxy-user)(?:\s+|=)["']?)([^-:=/\s"'][^:=/\s"']*):([^\s"']+)`)
	bearer   = regexp.MustCompile(`(\b[Bb]earer\s+)[\w.~+/=-]{8,}`)
	// schemeless is name:password@host, but no digest of an image.
	schemeless = regexp.MustCompile(`((?:^|[\s"'=,(])[\w.%+-]+:)([^\s"'@/:][^\s"'@:]*)(@[\w\[.-])`)
	scheme     = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
)

// userInfo masks what stands before the @ of URLs: a password, or a token by itself.
func userInfo(text string) string {
	var b strings.Builder
	for {
		at := scheme.FindStringIndex(text)
		if at == nil {
			break
		}
		b.WriteString(text[:at[1]])
		text = text[at[1]:]
		end := strings.IndexAny(text, " \t\r\n\"'<>`")
		if end < 0 {
			end = len(text)
		}
		authority := text[:end]
		if i := strings.IndexAny(authority, "/?#"); i >= 0 && (strings.Contains(authority[:i], "@") || isHost(authority[:i])) {
			authority = authority[:i] // else a password holds the slash
		}
		if i := strings.LastIndexByte(authority, '@'); i > 0 {
			b.WriteString(Mask)
			text = text[i:]
		}
	}
	return schemeless.ReplaceAllStringFunc(b.String()+text, func(s string) string {
		m := schemeless.FindStringSubmatch(s)
		return m[1] + Mask + m[3]
	})
}

// isHost reports whether a URL's authority is a host with a port, or without one.
func isHost(authority string) bool {
	_, port, found := strings.Cut(authority[strings.LastIndexByte(authority, ']')+1:], ":")
	return !found || numeric.MatchString(port)
}

// given is a name with what stands between it and its value. A flag may have a space there.
var given = regexp.MustCompile(`([\pL_][\pL\d_.\-]*)(\\?["']?[\])}]?\s{0,4}(?:={1,3}>?|:=?)\s{0,4}|\s+)`)

// assignments masks the values of names: --token=x, --token x, TOKEN=x, "token": "x".
func assignments(text string) string {
	var b strings.Builder
	for from := 0; ; {
		at := given.FindStringSubmatchIndex(text[from:])
		if at == nil {
			b.WriteString(text[from:])
			return b.String()
		}
		begin, name, between := from+at[2], text[from+at[2]:from+at[3]], text[from+at[4]:from+at[5]]
		value := from + at[1]
		b.WriteString(text[from:value])
		from = value
		dashed := begin > 0 && text[begin-1] == '-' && (begin == 1 || strings.ContainsRune("- \t\n\"'=", rune(text[begin-2])))
		query := begin > 0 && strings.IndexByte("?&", text[begin-1]) >= 0
		c := classOf(name, query)
		if c == open {
			continue
		}
		spaced := strings.TrimSpace(between) == ""
		if spaced && (!dashed || strings.HasPrefix(text[value:], "-")) {
			continue
		}
		if spaced && isSwitch(name) {
			c = min(c, random)
		}
		opening, inner := valueAt(text[value:], query, c == strong && colon.MatchString(between))
		if !c.hides(inner) || spaced && strings.HasSuffix(inner, ".py") {
			continue
		}
		b.WriteString(opening + Mask)
		from = value + len(opening) + len(inner)
	}
}

var quoted = regexp.MustCompile(`^(?:[bBuUfFrR]{0,2})(\\?["'])`)

// colon is of a header, or of YAML: the value may be several words.
var colon = regexp.MustCompile(`:\s+$`)

// valueAt is the value at the start of a text, and the quote before it.
func valueAt(text string, query, words bool) (opening, inner string) {
	if m := quoted.FindStringSubmatch(text); m != nil {
		inner = text[len(m[0]):]
		for i := 0; i < len(inner); i++ {
			switch {
			case strings.HasPrefix(inner[i:], m[1]):
				return m[0], inner[:i]
			case inner[i] == '\\':
				i++
			}
		}
		return m[0], inner
	}
	stops := " \t\r\n\"'`;&|<>)]}"
	switch {
	case words:
		stops = "\r\n\"'`;}"
	case query:
		stops = " \t\r\n\"'`&#;<>)]}"
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.IndexByte(stops, text[i]) >= 0, text[i] == ',' && next.MatchString(text[i+1:]):
			return "", text[:i]
		}
	}
	return "", text
}

// next is another name after a comma: in lists such as a=1,token=x,b=2.
var next = regexp.MustCompile(`^\s*["']?[\pL_][\pL\d_.\-]*["']?\s*[=:]|^\s|^$`)

// known are shapes of tokens that nothing else has.
var known = regexp.MustCompile(`\b(?:` + strings.Join([]string{
	`hf_[A-Za-z0-9]{20,}`, `api_org_[A-Za-z0-9]{20,}`, `gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_\w{20,}`, `gl(?:pat|dt|rt|ptt|agent)-[\w-]{20,}`,
	`xox[abeprs]-[\w-]{10,}`, `xapp-[\w-]{10,}`, `(?:AKIA|ASIA)[0-9A-Z]{16}`, `AIza[\w-]{35}`, `ya29\.[\w-]{20,}`,
	`eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?`, `[sr]k_(?:live|test)_[A-Za-z0-9]{16,}`, `npm_[A-Za-z0-9]{36}`, `pypi-[\w-]{32,}`,
	`dop_v1_[a-f0-9]{64}`, `SG\.[\w-]{16,}\.[\w-]{16,}`, `nvapi-[\w-]{20,}`, `r8_[A-Za-z0-9]{30,}`, `gsk_[A-Za-z0-9]{20,}`, `dapi[a-f0-9]{32}`,
	`wandb_v\d_[\w-]{20,}`, `AGE-SECRET-KEY-1[0-9A-Z]{20,}`, `sk-[\w-]{20,}`,
}, "|") + `)`)

// A key of sk-… has letters of both cases and digits, or is hexadecimal; the name of a file is not.
var (
	mixed = regexp.MustCompile(`[a-z].*[A-Z]|[A-Z].*[a-z]`)
	hex   = regexp.MustCompile(`[0-9a-f]{32}`)
)

func shapes(text string) string {
	return known.ReplaceAllStringFunc(text, func(found string) string {
		if key, ok := strings.CutPrefix(found, "sk-"); ok && !hex.MatchString(key) && !(mixed.MatchString(key) && digits.MatchString(key)) {
			return found
		}
		return Mask
	})
}
