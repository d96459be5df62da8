package secret

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// class is what a name says of the value that it is given.
type class int

const (
	open   class = iota // no secret
	random              // one only where the value looks like a key
	weak                // one, but for numbers and the like: token=512, auth=none
	strong              // one
)

// Words of names that mean a secret wherever they stand, written in one word.
var strongParts = []string{
	"password", "passwd", "passphrase", "passcode", "passkey", "secret", "credential", "mnemonic", "authorization",
	"apikey", "accesskey", "privatekey", "privkey", "accountkey", "authkey", "sharedkey", "signingkey", "encryptionkey",
	"licensekey", "licencekey", "masterkey", "servicekey", "storagekey", "subscriptionkey", "webhookkey", "sessionkey",
	"deploykey", "hmackey", "aeskey", "authcode", "accesscode", "totp",
}

// Last words of names that mean one. Of tokens a language model has thousands, and max_tokens
// is a number.
var (
	weakLast    = []string{"token", "auth", "oauth", "pass", "pwd", "pw", "bearer", "jwt", "cookie", "cookies", "otp"}
	weakEndings = []string{"githubpat", "ghpat", "gitlabpat", "azurepat"}
	randomLast  = []string{"key", "keys", "tokens", "login"}
	// queryNames are those of a URL's parameters, which are written short.
	queryNames = []string{"key", "sig", "signature", "sas", "code", "sid", "session"}
)

// harmlessLast are last words of what is about a secret and none: --password-file.
var harmlessLast = []string{
	"file", "path", "dir", "folder", "name", "env", "var", "type", "method", "mode", "provider", "host", "port", "length",
	"len", "size", "count", "policy", "store", "manager", "scope", "stdin", "prompt", "field", "column", "version", "ttl", "timeout",
	"enabled", "required", "expiry", "algorithm",
}

// switches begin the names of flags that take no value, mostly.
var switches = []string{"no", "use", "skip", "enable", "disable", "with", "without", "require", "allow", "has", "show", "verify", "save"}

// classOf says what a name means: of a flag, a variable, a parameter or a key.
func classOf(name string, query bool) class {
	if name == "PWD" || name == "OLDPWD" {
		return open // where a shell is
	}
	words := wordsOf(name)
	if len(words) == 0 {
		return open
	}
	last, joined := words[len(words)-1], strings.Join(words, "")
	contains := func(part string) bool { return strings.Contains(joined, part) }
	switch {
	case slices.Contains(harmlessLast, last):
		return open
	case slices.ContainsFunc(strongParts, contains), query && slices.Contains(queryNames, last), slices.Contains(words, "x") && slices.Contains(words, "amz"):
		return strong
	case slices.Contains(weakLast, last), slices.ContainsFunc(weakEndings, func(e string) bool { return strings.HasSuffix(joined, e) }):
		return weak
	case slices.Contains(randomLast, last):
		return random
	}
	return open
}

// isSwitch reports whether a flag mostly takes no value, so that what follows it is another
// argument.
func isSwitch(name string) bool {
	words := wordsOf(name)
	return len(words) > 0 && slices.Contains(switches, words[0])
}

// wordsOf are the words of a name in lower case, without numbers: "hf", "token" of --hf-token,
// HF_TOKEN_2 and hfToken.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			flush()
			continue
		}
		upper := unicode.IsUpper(r)
		next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if upper && len(word) > 0 && (unicode.IsLower(word[len(word)-1]) || next) {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return words
}

var (
	trivial = regexp.MustCompile(`^(?i:[-+]?\d{1,3}|true|false|yes|no|on|off|none|null|nil|auto|basic|bearer|digest)$`)
	letters = regexp.MustCompile(`[A-Za-z]`)
	digits  = regexp.MustCompile(`[0-9]`)
	// keyLike is long and has no dot or slash, as paths do.
	keyLike = regexp.MustCompile(`^[A-Za-z0-9_+=-]{16,}$`)
)

// hides reports whether a value is a secret, given what its name means.
func (c class) hides(value string) bool {
	switch {
	case value == "" || value == Mask:
		return false
	case c == strong:
		return true
	case c == weak:
		return !trivial.MatchString(value)
	case c == random:
		return looksRandom(value)
	}
	return false
}

func looksRandom(value string) bool {
	return keyLike.MatchString(value) && letters.MatchString(value) && digits.MatchString(value)
}
