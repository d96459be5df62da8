package report

import "testing"

func TestPlainTextIsNoMarkdown(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a leak of 5 % in <b> & |x|", `a leak of 5 % in &lt;b&gt; &amp; \|x\|`},
		{"*a* _b_ [c](d) #1 ~e~ !f `g`", "\\*a\\* \\_b\\_ \\[c\\](d) \\#1 \\~e\\~ \\!f \\`g\\`"},
		// GitHub links these by themselves, whatever escapes stand for their letters.
		{"see www.evil.example/x, now", "see `www.evil.example/x,` now"},
		{"_WWW.evil.example", "`_WWW.evil.example`"},
		{"(http://evil.example|ftp://evil.example)", "`(http://evil.example`\\|`ftp://evil.example)`"},
		{"ask @ann or ann@evil.example", "ask `@ann` or `ann@evil.example`"},
		{"`@ann``", "``` `@ann`` ```"},
		{"no www\u00a0. here: a:/b", "no www\u00a0. here: a:/b"},
		{"www|.evil", "www\\|.evil"},
		{"", ""},
	} {
		if got := plainMarkdown(c.text); got != c.want {
			t.Errorf("%q became %s, want %s", c.text, got, c.want)
		}
	}
}
