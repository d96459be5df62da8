package secret_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot/secret"
)

func TestTheLastWordOfANameMakesASecret(t *testing.T) {
	for _, given := range []string{
		"--wandb-key §", "--openai-key §", "--hf-key=§", "--ssh-key §", "--comet-key §", "OPENAI_KEY=§", "-DHF_KEY=§", "--hfkey §", "--hf-keys=§",
		"--hftoken=§", "HFTOKEN=§", "--accesstoken=§", "--bottoken §", "-DTOKEN=§", "--dbpass §", "--login user:§", "--login=user:§",
		"--pin 4§", "--token -4§", "--password -§", "--token §.py", "--key 4§x",
	} {
		for _, value := range []string{"hunter", "123456", "a1B2-c3_D4"} {
			text := strings.ReplaceAll(given, "§", value)
			for _, words := range [][]string{append([]string{"x"}, strings.Fields(text)...), {"sh", "-c", "x " + text + " --lr 1"}} {
				masked := secret.Words(words)
				if strings.Contains(strings.Join(masked, " "), value) || len(masked) != len(words) {
					t.Errorf("%q became %q", words, masked)
				}
				if again := secret.Words(masked); !slices.Equal(again, masked) {
					t.Errorf("%q is masked again as %q", masked, again)
				}
			}
		}
	}
}

func TestAWholeValueIsMasked(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`PASSWORD=$'hunter2a' x`, `PASSWORD=$'***' x`},
		{`TOKEN=$(echo hunter2b) x`, `TOKEN=*** x`},
		{`TOKEN=$(echo $(cat ")" hunter2b)) x`, `TOKEN=*** x`},
		{`TOKEN=a$(echo hunter2b)c x`, `TOKEN=*** x`},
		{"TOKEN=`echo hunter2b` x", `TOKEN=*** x`},
		{`TOKEN=${A:-hunter 2} x`, `TOKEN=*** x`},
		{`TOKEN=$(echo hunter2b`, `TOKEN=***`},
		{`PASSWORD="hun"'ter2' x`, `PASSWORD=*** x`},
		{`PASSWORD=hun"ter 2"x y`, `PASSWORD=*** y`},
		{`PASSWORD='hun'\''ter 2' x`, `PASSWORD=*** x`},
		{`PASSWORD=a]b}c x`, `PASSWORD=*** x`},
		{`(TOKEN=abcd) && {TOKEN=abcd}`, `(TOKEN=***) && {TOKEN=***}`},
		{`x --token $(cat a b) c`, `x --token *** c`},
		{`curl "http://h?token=$(echo a b)" x`, `curl "http://h?token=*** a b)" x`},
		{`echo "token=abcd" "b"`, `echo "token=***" "b"`},
		{"the note `token=abcd` stays", "the note `token=***` stays"},
		{`postgres://u:p@hunter2c/x@h/db`, `postgres://***@h/db`},
		{`bob:p@hunter2c@h:80`, `bob:***@h:80`},
		{`http://u:p@h/a,http://v:q@i/b`, `http://***@h/a,http://***@i/b`},
		{`--config={"auth": {"user":"x","value":"hunter2"}, "n": 1}`, `--config={"auth": ***, "n": 1}`},
		{`{"auth": ["a}", "hunter2"]}`, `{"auth": ***}`},
		{`{"auth": {"user":"x","value":"hunter2"`, `{"auth": ***`},
		{`os.environ.setdefault("HF_TOKEN","zzz")`, `os.environ.setdefault("HF_TOKEN","***")`},
		{`run(["x", "--hf-token", "zzz", "--lr", "1"])`, `run(["x", "--hf-token", "***", "--lr", "1"])`},
		{`f(token=os.environ["zzz"])`, `f(token=***)`},
		{`token = decode("zzz", 1); x`, `token = ***; x`},
	} {
		got := secret.Text(c.text)
		if got != c.want {
			t.Errorf("%s\nbecame %s\nwant   %s", c.text, got, c.want)
		}
		if again := secret.Text(got); again != got {
			t.Errorf("%s is masked again as %s", got, again)
		}
	}
}

func TestShapesOfTokensAreMasked(t *testing.T) {
	const letters = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8aB3dE5gH7jK9m"
	for _, token := range []string{
		"hvs." + letters, "GOCSPX-" + letters[:28], "tfp_" + letters, "shpat_0123456789abcdef0123456789abcdef", "lin_api_" + letters, "xai-" + letters,
		"pplx-" + letters, "dckr_pat_" + letters[:27], "ATATT3" + letters, "123456789:" + letters[:35], "sk-" + strings.Repeat("abcdefgh", 5),
	} {
		if got := secret.Text("x " + token + " y"); got != "x *** y" {
			t.Errorf("%s became %q", token, got)
		}
	}
}

func TestWhatATradeNamesStays(t *testing.T) {
	for _, text := range []string{
		"--cls-token=[CLS]", "--pad-token <pad>", "--eos-token </s>", "--bos-token <s>", "--bos-token=<|begin_of_text|>", "--unk-token [UNK]",
		"--mask-token=<mask>", "--sep-token [SEP]", "--pos-token mean", "--n-token=32000", "--num-image-token=1576", "--max-token 4096", "--max-tokens=4096",
		"--loss-per-token=mean", "model.use_cls_token=learned", "model.padtoken=eos", "--first-pass forward", "--high-pass=0.5", "--low-pass=1200", "--pw=3.14",
		"--secret-dim 64", "--sort-key name", "--sort-key step_2", "--batch-key=batch_1", "--key=image", "--authorization-url=http://x",
		"python -u pkg:main", "python3.12 -B -u pkg:main", "/usr/bin/python -u pkg:main", "lr:0.1@5", "img:tag@sha256:abc", "ssh://git@github.com", "git+ssh://git@github.com/a/b@v1",
		"http://h/?code=404", "token = tokenizer.next()", "token = model.sample(logits, k=5) x",
	} {
		if got := secret.Text(text); got != text {
			t.Errorf("the text %q became %q", text, got)
		}
		words := strings.Fields(text)
		if got := secret.Words(words); !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
	for _, code := range []string{"x = sorted(y, key=lambda a: a[1])", `parser.read(["token", "mask"])`, "token = []"} {
		if got := secret.Words([]string{"python", "-c", code}); got[2] != code {
			t.Errorf("%q became %q", code, got[2])
		}
	}
}

func TestLongTextsAreMaskedFast(t *testing.T) {
	for _, part := range []string{"token=(", `token="a"(`, "token=a'", "-u ", "a:b@", "http://a:b@", "token=`", "token=$(", "token=a]", `("token","`} {
		start := time.Now()
		secret.Text(strings.Repeat(part, 1<<17/len(part)))
		if spent := time.Since(start); spent > 30*time.Second {
			t.Errorf("%d bytes of %q took %v", 1<<17, part, spent)
		} else {
			t.Logf("%q: %v", part, spent)
		}
	}
}
