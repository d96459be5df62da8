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
	open     class = iota // no secret
	random                // a secret only if the value looks like a key
	doubtful              // one, but for a word: key=image
	keyOf                 // one, but for numbers and the like, and for a file with the key
	weak                  // one, but for numbers and the like: token=512, auth=none
	strong                // one
)

// Parts of names that mean a secret in any position, written as one word.
var strongParts = []string{
	"password", "passwd", "passphrase", "passcode", "passkey", "secret", "credential", "mnemonic", "authorization", "authheader",
	"apikey", "accesskey", "privatekey", "privkey", "accountkey", "authkey", "sharedkey", "signingkey", "encryptionkey",
	"licensekey", "licencekey", "masterkey", "servicekey", "storagekey", "subscriptionkey", "webhookkey", "sessionkey",
	"seedphrase", "deploykey", "hmackey", "aeskey", "authcode", "accesscode", "totp",
}

// Last words of names that mean one, by the word before them too.
var (
	weakLast    = []string{"token", "auth", "oauth", "pass", "pwd", "pw", "pin", "bearer", "jwt", "cookie", "cookies", "otp", "cred", "creds"}
	weakEndings = []string{"githubpat", "ghpat", "gitlabpat", "azurepat"}
	randomLast  = []string{"keys", "tokens", "login", "pat", "sas", "ak", "sk", "license", "licence"}
	webhookLast = []string{"webhook", "webhooks", "url", "uri", "endpoint"}
	// queryNames are those of a URL's parameters, which are written short.
	queryNames = []string{"key", "sig", "signature", "sas", "code", "sid", "session"}
)

// holders give or have the secret that the next word names: --wandb-key, DB_PASS, hfkey.
var holders = strings.Fields(`hf huggingface face hub wandb comet neptune clearml mlflow openai anthropic claude gemini cohere mistral
	groq together replicate nvidia ngc xai perplexity deepseek openrouter langsmith aws s3 gcp gcs google azure github gh gitlab docker kaggle
	slack discord telegram twilio sendgrid stripe datadog dd sentry pinecone weaviate qdrant redis mongo mongodb db database mysql postgres pg
	sql smtp mail ftp ssh ssl tls rsa gpg pgp tsig client user admin root account bot registry vault app access bearer ca`)

// trade are words of machine learning, sorting and filtering that come before a harmless token, key or pass: --pad-token, --sort-key,
// --high-pass.
var trade = strings.Fields(`cls class pad eos bos unk mask sep pos eot sot eod eom sub pre non multi de special prefix suffix begin start
	end stop first second third last next prev previous final one two three single extra new image img video vision audio speech text word
	patch latent visual input output source src target tgt lang language query prompt context register memory loss time step label labels
	feature features object control trigger placeholder learned learnable distillation dist think thinking decoder encoder
	high low band all forward backward sort group batch partition cache dict index primary foreign public pub layer obs cell column caption
	metric monitor model state sample data dataset type by question answer kv attn attention rng prng random jax`)

// counts are words of names that are given a number: --num-image-token.
var counts = []string{"n", "num", "nb", "max", "min", "total", "per", "avg", "mean"}

// harmlessLast are last words of names that are about a secret without being one: --password-file.
var harmlessLast = []string{
	"file", "path", "dir", "folder", "name", "env", "var", "type", "method", "mode", "provider", "host", "port", "length",
	"len", "size", "count", "policy", "store", "manager", "scope", "stdin", "prompt", "field", "column", "version", "ttl", "timeout",
	"enabled", "required", "expiry", "algorithm", "url", "uri", "endpoint", "dim", "dims", "layers", "heads", "rate", "ratio", "weight", "prob",
}

// switches begin the names of flags that take no value, mostly.
var switches = []string{"no", "use", "skip", "enable", "disable", "with", "without", "require", "allow", "has", "show", "verify", "save"}

// classOf says what a name means: of a flag, a variable, a parameter or a key.
func classOf(name string, query bool) class {
	if name == "PWD" || name == "OLDPWD" {
		return open // where a shell is
	}
	words := wordsOf(strings.TrimPrefix(name, "-D"))
	if len(words) == 0 {
		return open
	}
	last, joined := words[len(words)-1], strings.Join(words, "")
	contains := func(part string) bool { return strings.Contains(joined, part) }
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	held := slices.Contains(holders, before)
	switch {
	case contains("webhook") && slices.Contains(webhookLast, last):
		return weak // whoever knows its URL may use it
	case slices.Contains(harmlessLast, last):
		return open
	case slices.ContainsFunc(strongParts, contains), slices.Contains(words, "x") && slices.Contains(words, "amz"):
		return strong
	case query && slices.Contains(queryNames, last), slices.ContainsFunc(weakEndings, func(e string) bool { return strings.HasSuffix(joined, e) }):
		return weak
	case slices.Contains(weakLast, last) || last == "key":
		switch {
		case slices.Contains(trade, before) || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(counts, w) }):
			return random
		case last == "key" && !held:
			return doubtful
		case last == "key":
			return keyOf
		}
		return weak
	case slices.Contains(randomLast, last):
		if held && last != "login" {
			return weak
		}
		return random
	case strings.HasSuffix(last, "key"), strings.HasSuffix(last, "token"): // of an unknown service: --acmekey
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
// HF_TOKEN_2, hfToken and hftoken.
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
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	for _, ending := range []string{"token", "key", "keys", "pass"} {
		before, found := strings.CutSuffix(last, ending)
		if found && before != "" && (ending == "token" || slices.Contains(holders, before)) {
			return append(words[:len(words)-1], before, ending)
		}
	}
	return words
}

var (
	trivial = regexp.MustCompile(`^(?i:[-+]?\d{1,3}|[-+]?\d{0,3}\.\d{1,6}|\d(?:\.\d{1,3})?e-?\d|\[\]|\{\}|true|false|yes|no|on|off|none|null|nil|auto|basic|bearer|digest)$`)
	letters = regexp.MustCompile(`[A-Za-z]`)
	digits  = regexp.MustCompile(`[0-9]`)
	// doubted is a part of a key, or a whole one that is short.
	doubted = regexp.MustCompile(`^[A-Za-z0-9+=_-]{6,}$`)
	// keyFile matches the path of a key file.
	keyFile = regexp.MustCompile(`\.(?:pem|key|crt|cer|pub)$|/\.ssh/`)
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
	case c == keyOf && keyFile.MatchString(value):
		return false
	case c == weak, c == keyOf:
		return !trivial.MatchString(value)
	case c == doubtful:
		return doubted.MatchString(value) && (digits.MatchString(value) || mixed.MatchString(value) && len(value) >= 16)
	case c == random:
		return looksRandom(value)
	}
	return false
}

func looksRandom(value string) bool {
	return keyLike.MatchString(value) && letters.MatchString(value) && digits.MatchString(value)
}
