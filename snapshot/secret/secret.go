// Package secret masks likely secrets in command lines, URLs and messages.
//
// A value is masked because of its name (--token, HF_TOKEN=, "password":), its place in a URL (user:password@, ?sig=) or a known shape
// (hf_…, AKIA…). This is the same for recorded and read runs, so equal commands stay equal, and commands that differ only in a secret
// become equal. A secret without a name or a shape, and with fewer than 32 characters, is not recognized; memdiag record --no-command
// leaves the whole command out.
package secret

import (
	"regexp"
	"strings"
)

// Mask replaces a secret.
const Mask = "***"

var (
	// named is a word of a command that gives a name its value: --token=x, HF_TOKEN=x, +hub.token=x, /token:x.
	named = regexp.MustCompile(`(?s)^([-+~/]{0,2}[\pL_][\pL\d_.\-]*)(:?=|:)(.*)$`)
	flag  = regexp.MustCompile(`^--?[\pL_][\pL\d_.\-]*$`)
	code  = regexp.MustCompile(`^-[A-Za-z]*[ce]$`) // sh -c, python -c, bash -lc, perl -e
	// account is the flag of curl and others for a name and a password.
	account     = regexp.MustCompile(`^(?:-u|-U|--user|--proxy-user|--login)$`)
	accountWord = regexp.MustCompile(`(?s)^((?:-u|-U|--(?:(?:proxy-)?user|login)=)?[^-:=/\s][^:=/\s]*:)(.+)$`)
	accountFlag = regexp.MustCompile(`^(?:-u|--(?:(?:proxy-)?user|login)=)`)
	userIDs     = regexp.MustCompile(`^(?:-u|-U|--user=)?[0-9]+:[0-9]+$`) // docker run --user 1000:1000
	numeric     = regexp.MustCompile(`^[0-9]*$`)
)

// Words are the words of a command, with its secrets masked. Their number does not change.
func Words(words []string) []string {
	if words == nil {
		return nil
	}
	masked := make([]string, len(words))
	for i, w := range words {
		masked[i] = word(w, words[:i])
	}
	return masked
}

// word masks one word of a command, given the words before it.
func word(w string, words []string) string {
	before := ""
	if len(words) > 0 {
		before = words[len(words)-1]
	}
	if flag.MatchString(before) && classOfFlag(before).hides(w) && (!flag.MatchString(w) || classOfFlag(before).takes(w)) {
		return Mask
	}
	if before == "login" && looksRandom(w) {
		return Mask
	}
	if account.MatchString(before) && !runsPython(words) || accountFlag.MatchString(w) {
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

// Value is the value of a name, masked if the name or the value itself indicates a secret.
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
	text = maskAccounts(text)
	text = header.ReplaceAllString(text, "${1}"+Mask)
	text = assignments(text)
	text = bearer.ReplaceAllString(text, "${1}"+Mask)
	return shapes(text)
}

// maskAccounts masks the passwords of accounts.
func maskAccounts(text string) string {
	var b strings.Builder
	from := 0
	for _, m := range accounts.FindAllStringSubmatchIndex(text, -1) {
		user, password := text[m[4]:m[5]], text[m[6]:m[7]]
		words := strings.Fields(text[max(0, m[2]-200):m[4]])
		if numeric.MatchString(user) && numeric.MatchString(password) || len(words) > 0 && words[len(words)-1] == "-u" && runsPython(words) {
			continue
		}
		b.WriteString(text[from:m[6]] + Mask)
		from = m[7]
	}
	return b.String() + text[from:]
}

var python = regexp.MustCompile(`(?:^|[/"'(;&|])(?:python|pypy)[\d.]*(?:\.exe)?$`)

// runsPython reports whether words end in the flags of a Python interpreter, whose -u is no account.
func runsPython(words []string) bool {
	for i := len(words) - 1; i >= 0; i-- {
		if !strings.HasPrefix(words[i], "-") {
			return python.MatchString(words[i])
		}
	}
	return false
}

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// pathSecret is a URL that whoever knows it may use.
	pathSecret = regexp.MustCompile(`(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot)[^\s"'<>?#]+`)
	// header matches an HTTP header, whose value extends to the end of a line or a quote.
	header = regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization\s*:\s*|\b(?:set-)?cookie\s*:\s*)[^\s"'][^\n"']*`)
	// accounts are the flags of account in code.
	accounts = regexp.MustCompile(`((?:^|[\s"'])(?:-u|-U|--user|--proxy-user|--login)(?:\s+|=)["']?)([^-:=/\s"'][^:=/\s"']*):([^\s"']+)`)
	bearer   = regexp.MustCompile(`(\b[Bb]earer\s+)[\w.~+/=-]{8,}`)
	// schemeless is name:password@host, or //name:password@host.
	schemeless = regexp.MustCompile(`(?:^|[\s"'=,(])(?://)?[\w.%+-]+:([^\s"'@/:][^\s"':]*)@[\w\[.-]`)
	// noHost is after an @ a step (lr:0.1@5) or the digest of an image.
	noHost = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]+)?|(?:sha[0-9]+|md5):[0-9a-f]+)(?:[\s"',;)]|$)`)
	scheme = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
)

// userInfo masks what comes before the @ of URLs: a password, or over HTTP a token by itself. A user without a password is not masked:
// ssh://git@host.
func userInfo(text string) string {
	var b strings.Builder
	for {
		at := scheme.FindStringIndex(text)
		if at == nil {
			break
		}
		b.WriteString(text[:at[1]])
		web := strings.Contains(strings.ToLower(text[at[0]:at[1]]), "http")
		text = text[at[1]:]
		end := strings.IndexAny(text, " \t\r\n\"'<>`")
		if end < 0 {
			end = len(text)
		}
		authority := text[:end]
		if another := scheme.FindStringIndex(authority); another != nil && strings.Contains(authority[:another[0]], "@") {
			authority = authority[:another[0]]
		}
		if i := strings.IndexAny(authority, "/?#"); i >= 0 && isHost(authority[:i]) {
			authority = authority[:i] // else a password holds the slash
		}
		if i := strings.LastIndexByte(authority, '@'); i > 0 && (web || strings.Contains(authority[:i], ":") || looksRandom(authority[:i])) {
			b.WriteString(Mask)
			text = text[i:]
		}
	}
	text = b.String() + text
	b.Reset()
	from := 0
	for _, m := range schemeless.FindAllStringSubmatchIndex(text, -1) {
		if noHost.MatchString(text[m[3]+1:]) {
			continue
		}
		b.WriteString(text[from:m[2]] + Mask)
		from = m[3]
	}
	return b.String() + text[from:]
}

// isHost reports whether a URL's authority is a host with a port, or without one.
func isHost(authority string) bool {
	_, port, found := strings.Cut(authority[strings.LastIndexByte(authority, ']')+1:], ":")
	return !found || numeric.MatchString(port)
}

// known are shapes of tokens that nothing else has.
var known = regexp.MustCompile(`\b(?:` + strings.Join([]string{
	`hf_[A-Za-z0-9]{20,}`, `api_org_[A-Za-z0-9]{20,}`, `gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_\w{20,}`, `gl(?:pat|dt|rt|ptt|agent)-[\w-]{20,}`,
	`xox[abeprs]-[\w-]{10,}`, `xapp-[\w-]{10,}`, `(?:AKIA|ASIA)[0-9A-Z]{16}`, `AIza[\w-]{35}`, `ya29\.[\w-]{20,}`,
	`eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?`, `[sr]k_(?:live|test)_[A-Za-z0-9]{16,}`, `npm_[A-Za-z0-9]{36}`, `pypi-[\w-]{32,}`,
	`dop_v1_[a-f0-9]{64}`, `SG\.[\w-]{16,}\.[\w-]{16,}`, `nvapi-[\w-]{20,}`, `r8_[A-Za-z0-9]{30,}`, `gsk_[A-Za-z0-9]{20,}`, `dapi[a-f0-9]{32}`,
	`wandb_v\d_[\w-]{20,}`, `AGE-SECRET-KEY-1[0-9A-Z]{20,}`, `sk-[\w-]{20,}`,
	`hv[sbr]\.[\w-]{20,}`, `GOCSPX-[\w-]{20,}`, `tfp_[A-Za-z0-9]{20,}[\w-]*`, `shp(?:at|ca|pa|ss)_[A-Za-z0-9]{20,}`, `lin_api_[A-Za-z0-9]{20,}`,
	`(?:xai|pplx)-[A-Za-z0-9]{20,}`, `dckr_pat_[\w-]{20,}`, `ATATT3[\w=-]{20,}`, `[0-9]{8,10}:[\w-]{34}(?:\w\b|-)`,
}, "|") + `)`)

// A key of sk-… has letters of both cases and digits, or a long part; the name of a file has neither.
var (
	mixed    = regexp.MustCompile(`[a-z].*[A-Z]|[A-Z].*[a-z]`)
	longPart = regexp.MustCompile(`[A-Za-z0-9]{20}`)
)

var (
	long  = regexp.MustCompile(`[A-Za-z0-9+/]{32,}`)
	plain = regexp.MustCompile(`[A-Za-z0-9]{32,}`)
)

// maskDrawn masks long words that look drawn at random. With a slash in it, as a path has, it is
// none but a key of AWS, which has 40 characters.
func maskDrawn(found string) string {
	if len(found) == 40 && isDrawn(found) {
		return Mask
	}
	return plain.ReplaceAllStringFunc(found, func(word string) string {
		if isDrawn(word) {
			return Mask
		}
		return word
	})
}

// isDrawn reports whether letters of both cases and digits take turns as in what was drawn at
// random: at 0.62 of the places, while names in capitals, as Wav2Vec2ForCTC, change at a third. The
// hashes of Git and UUIDs have no capitals.
func isDrawn(word string) bool {
	const least = 0.45
	var seen [4]int
	changes, before := 0, -1
	for i := range len(word) {
		kind := kindOf(word[i])
		if seen[kind]++; kind != before && before >= 0 {
			changes++
		}
		before = kind
	}
	return seen[small] > 0 && seen[capital] > 0 && seen[digit] > 0 && float64(changes) >= least*float64(len(word))
}

const (
	small = iota
	capital
	digit
	other
)

func kindOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return small
	case 'A' <= c && c <= 'Z':
		return capital
	case '0' <= c && c <= '9':
		return digit
	}
	return other
}

func shapes(text string) string {
	text = known.ReplaceAllStringFunc(text, func(found string) string {
		if key, ok := strings.CutPrefix(found, "sk-"); ok && !longPart.MatchString(key) && !(mixed.MatchString(key) && digits.MatchString(key)) {
			return found
		}
		return Mask
	})
	return long.ReplaceAllStringFunc(text, maskDrawn)
}
