package secret_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot/secret"
)

// hidden are commands with § in the place of a secret.
var hidden = [][]string{
	{"python", "train.py", "--token=§"},
	{"python", "train.py", "--token", "§", "--lr", "1"},
	{"python", "train.py", "--hf-token=§"},
	{"python", "train.py", "-token", "§"},
	{"python", "train.py", "--hfToken", "§"},
	{"python", "train.py", "--api-key", "§"},
	{"python", "train.py", "--api_key=§"},
	{"python", "train.py", "--apikey=§"},
	{"python", "train.py", "--openai-api-key", "§"},
	{"python", "train.py", "--password=§"},
	{"python", "train.py", "--db.password", "§"},
	{"python", "train.py", "--password", "-§"},
	{"sh", "-c", "curl -H 'X-Api-Key: § §' http://h/"},
	{"python", "train.py", "--passwd", "§"},
	{"python", "train.py", "--passphrase", "§"},
	{"python", "train.py", "--pass=§"},
	{"python", "train.py", "--pw", "§"},
	{"python", "train.py", "--client-secret=§"},
	{"python", "train.py", "--secret", "§"},
	{"python", "train.py", "--auth=§"},
	{"python", "train.py", "--auth", "bob:§"},
	{"python", "train.py", "--credential", "§"},
	{"python", "train.py", "--credentials=§"},
	{"python", "train.py", "--private-key", "§"},
	{"python", "train.py", "--jwt=§"},
	{"python", "train.py", "--cookie", "session=§"},
	{"python", "train.py", "wandb.api_key=§", "+hub.token=§", "++a.b.secret=§"}, // Hydra
	{"env", "HF_TOKEN=§", "python", "train.py"},
	{"env", "AWS_SECRET_ACCESS_KEY=§", "WANDB_API_KEY=§", "MYSQL_PWD=§", "DB_PASS=§", "python", "train.py"},
	{"docker", "run", "-e", "HF_TOKEN=§", "--env=GITHUB_PAT=§", "-eAPI_KEY=§", "image"},
	{"java", "-Dpassword=§", "-Djavax.net.ssl.keyStorePassword=§", "Main"},
	{"curl", "-u", "bob:§", "http://host/"},
	{"curl", "--user", "bob:§", "http://host/"},
	{"curl", "--user=bob:§", "http://host/"},
	{"curl", "-ubob:§", "http://host/"},
	{"curl", "-H", "Authorization: Bearer §", "http://host/"},
	{"curl", "-H", "authorization: Basic §", "http://host/"},
	{"curl", "--header=X-Api-Key: §", "http://host/"},
	{"curl", "-H", "Cookie: a=§; b=§"},
	{"curl", "http://bob:§@host:80/path?x=1"},
	{"curl", "https://§@host/path"},
	{"curl", "https://bob:a/§@host/path"},
	{"curl", "https://host/path?x=1&token=§&y=2#top"},
	{"curl", "https://host/path?access_token=§"},
	{"curl", "https://host/path?key=§&sig=§"},
	{"curl", "https://bucket/o?X-Amz-Signature=§&X-Amz-Credential=§"},
	{"curl", "bob:§@host:8080/x"},
	{"rsync", "--to", "//bob:§@host/x"},
	{"curl", "https://hooks.slack.com/services/T0/B0/§"},
	{"optuna", "--storage", "mysql+pymysql://root:§@db/study"},
	{"x", "--dsn=Server=db;User Id=sa;Password=§;"},
	{"x", "--conn", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§;Suffix=b"},
	{"sh", "-c", "curl -u bob:§ --proxy-user='al:§' http://h/"},
	{"sh", "-c", "HF_TOKEN=§ python train.py --lr 1"},
	{"bash", "-lc", "export A=1 API_KEY='§'; python train.py --password \"§\" --token §; echo done"},
	{"sh", "-c", `curl -d "{\"token\": \"§\", \"n\": 1}" -H "Authorization: Bearer §" https://u:§@h/`},
	{"python", "-c", `import os; os.environ["HF_TOKEN"] = "§"; login(token='§', password=b"§"); print(1)`},
	{"x", "--config", `{"lr": 1, "token": "§", "db": {"password":"§"}}`},
	{"x", "--config", "lr=1,token=§,steps=2"},
	{"x", "--password=a b,c&d;§"},
	{"x", "--password", "a b'c\"§"},
	{"x", "-----BEGIN RSA PRIVATE KEY-----\nS\n-----END RSA PRIVATE KEY-----"},
}

func TestSecretsOfCommandsAreMasked(t *testing.T) {
	for _, s := range []string{"hunter2", "0123456789", "S3cr+tV4lue==", "abc.DEF-ghi_123", "Zm9vOmJhcg"} {
		for _, command := range hidden {
			words := make([]string, len(command))
			for i, w := range command {
				words[i] = strings.ReplaceAll(w, "§", s)
			}
			masked := secret.Words(words)
			if len(masked) != len(words) || strings.Contains(strings.Join(masked, " "), s) {
				t.Errorf("%q became %q", words, masked)
			}
			if again := secret.Words(masked); !slices.Equal(again, masked) {
				t.Errorf("%q is masked again as %q", masked, again)
			}
		}
	}
}

func TestTheRestOfACommandStays(t *testing.T) {
	for _, c := range []struct{ name, words, want string }{
		{"a flag and its value", "python train.py --token abc1 --lr 1e-3", "python train.py --token *** --lr 1e-3"},
		{"a URL keeps its host and path", "curl https://bob:x@host:80/p?token=abcd&n=1", "curl https://***@host:80/p?token=***&n=1"},
		{"a list keeps its other values", "x lr=1,token=abcd,steps=2", "x lr=1,token=***,steps=2"},
		{"a variable of env", "env HF_TOKEN=abcd python train.py", "env HF_TOKEN=*** python train.py"},
		{"a switch is followed by an argument", "x --use-auth-token train.py --no-auth data", "x --use-auth-token train.py --no-auth data"},
	} {
		if got := strings.Join(secret.Words(strings.Fields(c.words)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	const script = `HF_TOKEN=abcd python train.py --password "a b" --lr 1 && curl "http://h/?token=abcd&n=1"`
	const want = `HF_TOKEN=*** python train.py --password "***" --lr 1 && curl "http://h/?token=***&n=1"`
	if got := secret.Words([]string{"sh", "-c", script}); got[2] != want {
		t.Errorf("a script: %s", got[2])
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for _, words := range [][]string{
		{"python", "train.py", "--tokenizer", "bert-base-uncased", "--tokenizer=gpt2", "--max-tokens", "512", "--num_tokens=1000000", "--token-dim=64"},
		{"python", "train.py", "--eos-token=2", "--author", "bob", "--authors=a,b", "--pad_token_id", "50256", "--bypass", "x", "--compass=n"},
		{"python", "train.py", "--password-file=/run/secrets/db", "--token-file", "token.txt", "--secret-name", "db", "--auth-type", "basic", "--auth=none"},
		{"python", "train.py", "--key=image", "--sort-key", "name", "dataset.key=label", "--key-path", "a", "--passes", "2", "--two-pass", "train.py"},
		{"python", "-u", "train.py", "-m", "pkg.module:main", "tests/test_a.py::test_b[x-1]"},
		{"torchrun", "--rdzv-endpoint=host:29500", "--nproc-per-node=2", "train.py", "a@b", "git@host:path/x", "image@sha256:0123456789abcdef"},
		{"sh", "-c", "docker run -u 1000:1000 -v /a:/b image"},
		{"docker", "run", "--user", "1000:1000", "--user=0:0", "-v", "/a:/b", "image:tag"},
		{"python", "-c", "x = {1: 2}; print('a:b', x[1] == 3)", "C:\\a\\b", "http://host:80/path@v1?x=1#y", "file:///a/b"},
		{"env", "PWD=/home/bob", "OLDPWD=/x", "PATH=/bin:/usr/bin", "-i"},
		{"x", "sk-learn-benchmarks-of-2024-01-02", "disk-0123456789abcdef0123456789abcdef", "run_20240102", "0123456789abcdef0123456789abcdef01234567"},
		nil, {}, {""}, {"", "=", ":", "--", "-", "--=", "@", "://", "://@", "?token=", "--token=", "--token", "--lr", "1"},
	} {
		if got := secret.Words(words); !slices.Equal(got, words) || (got == nil) != (words == nil) {
			t.Errorf("%q became %q", words, got)
		}
	}
}

func TestTokensOfKnownShapesAreMaskedAnywhere(t *testing.T) {
	const letters = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8aB3dE5gH7jK9m"
	for _, token := range []string{
		"hf_" + letters, "ghp_" + letters, "github_pat_" + letters, "glpat-" + letters[:20], "xoxb-1234567890-" + letters, "AKIAIOSFODNN7EXAMPLE",
		"AIza" + letters[:35], "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "sk-proj-" + letters, "sk-ant-api03-" + letters, "sk-0123456789abcdef0123456789abcdef",
		"sk_live_" + letters, "nvapi-" + letters, "gsk_" + letters, "r8_" + letters,
	} {
		for _, words := range [][]string{{"x", token}, {"x", "--name", token}, {"x", "a=" + token + ",b=1"}, {"sh", "-c", "x " + token + "; y"}} {
			if got := strings.Join(secret.Words(words), " "); strings.Contains(got, token[8:]) {
				t.Errorf("%q became %q", words, got)
			}
		}
	}
}

func TestMasksAreMaskedOnce(t *testing.T) {
	word := rapid.StringMatching(`[-+]{0,2}[a-zA-Z_.]{0,9}(token|auth|password|key|://|\?|user)?[-=:@/?&," '\\]{0,3}[a-zA-Z0-9*@:/,"'= &\\$(){}\[\]\x60-]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(word).Draw(t, "words")
		once := secret.Words(words)
		if len(once) != len(words) {
			t.Fatalf("%d words became %d", len(words), len(once))
		}
		for _, text := range append(words, rapid.String().Draw(t, "text")) {
			once := secret.Text(text)
			if twice := secret.Text(once); twice != once {
				t.Fatalf("%q became %q, then %q", text, once, twice)
			}
		}
		if twice := secret.Words(once); !slices.Equal(twice, once) {
			t.Fatalf("%q became %q, then %q", words, once, twice)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, command := range hidden {
		f.Add(strings.Join(command, " "))
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := secret.Text(text)
		if strings.Count(once, "\n") > strings.Count(text, "\n") {
			t.Errorf("%q became %q", text, once)
		}
	})
}
