package secret_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot/secret"
)

// TestSecretsOfProvidersThatNobodyKnowsAreMasked: words of a command in which § is a secret.
func TestSecretsOfProvidersThatNobodyKnowsAreMasked(t *testing.T) {
	const value = "Zx9qLm2Wv7Rt4Kp8"
	for _, text := range []string{
		"--foo-key §", "--foo-key=§", "--fookey=§", "--acmekey §", "--acmetoken=§", "ACME_KEY=§", "ACMEKEY=§", "env ACME_CREDS=§ python", "--creds §", "--cred=§", "--foo-secret-id §",
		"--pat §", "--sas=§", "--ak § --sk §", "--license §", "--seed-phrase=§", "--minio-key=§", "--oss-accesskeysecret=§", "--auth-header §", "-eHF_TOKEN=§", "--env=HF_TOKEN=§",
		"--export=ALL,HF_TOKEN=§", "--set hf.token=§", "model=a,token=§,b=2", "--dsn=https://§@sentry.io/1", "--conn=Server=h;User=sa;Password=§;x=1", "redis://:§@h:6379/0",
		"--slack-webhook=https://outlook.office.com/webhook/§", "--webhook-url=https://h/§", "https://h/x?X-Amz-Signature=§&X-Amz-Date=1", "AccountKey=§==", "sess-§§§", "whsec_§§", "/x/§§/y",
		`{"wandb":{"api_key":"§","project":"x"}}`, `{\"password\":\"§\"}`, `{'token':'§'}`,
	} {
		words := append([]string{"prog"}, strings.Fields(strings.ReplaceAll(text, "§", value))...)
		if got := strings.Join(secret.Words(words), " "); strings.Contains(got, value) || !strings.Contains(got, secret.Mask) {
			t.Errorf("%q became %q", words, got)
		}
	}
	for _, header := range []string{"Authorization: Bearer §", "X-Api-Key: §", "api-key: §", "x-goog-api-key:§", "PRIVATE-TOKEN: §", "X-Auth-Token: §", "Cookie: sid=§"} {
		words := []string{"curl", "-H", strings.ReplaceAll(header, "§", value)}
		if got := secret.Words(words); strings.Contains(got[2], value) {
			t.Errorf("%q became %q", words, got)
		}
	}
}

func TestInnocentWordsStay(t *testing.T) {
	for _, text := range []string{
		"--key-dim 64", "--tokenizer gpt2", "--max-tokens 512", "--num-key-value-heads 8", "--auth-type basic", "--monkey bar123456", "--hotkey ctrl-f12", "--keyframe=10",
		"--author john2", "--pin-memory true", "--pass-rate 0.5", "--signature serving_default", "--patience 10", "--pat 3", "--sk 8", "--ak=2", "--sas none", "--license MIT", "--license=apache-2.0",
		"--answer-key=answer_2", "--kv-key layer1a", "--rng-key 1234567", "--prng-key=123456", "attn.key=linear1x", "qkv.key_proj=true", "--ssl-key server1.key", "--tls-key /etc/x/server1.pem",
		"--ssh-key=~/.ssh/id_rsa2", "--webhook-timeout 1000", "--checkpoint ckpt_0123456789abcdef0123456789abcdef01234567", "--id 123e4567-e89b-12d3-a456-426614174000",
		"--model Wav2Vec2ForSequenceClassification", "--model Qwen2ForConditionalGenerationWithHead", "/data/Llama2/Exp12/checkpoints/Best1234ab/x.bin",
		"--hash e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "LearningRateSchedulerWithWarmupAndCosineDecay2", "u@h:/x", "-p 8080:80", "-k test_loss_v2",
	} {
		words := strings.Fields(text)
		if got := secret.Words(words); !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
}

// TestWhatWasDrawnAtRandomIsMostlyMasked has no name and no shape that is known.
func TestWhatWasDrawnAtRandomIsMostlyMasked(t *testing.T) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for _, c := range []struct {
		name          string
		kinds, length int
	}{{"keys of 40 letters and digits", 62, 40}, {"keys of AWS", 64, 40}, {"keys of 64 letters and digits", 62, 64}} {
		masked := 0
		for range 1000 {
			key := make([]byte, c.length)
			for i := range key {
				key[i] = letters[r.IntN(c.kinds)]
			}
			if got := secret.Words([]string{"prog", string(key)}); got[1] == secret.Mask {
				masked++
			}
		}
		t.Logf("%d of 1000 %s are masked", masked, c.name)
		if masked < 950 {
			t.Errorf("%d of 1000 %s are masked", masked, c.name)
		}
	}
}
