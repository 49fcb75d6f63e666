package signed

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
)

// atDigest is the suffix of references with a digest.
var atDigest = "@" + string(digest.FromString("one"))

// TestIdentity checks what each rule accepts, after the examples of containers-policy.json(5).
func TestIdentity(t *testing.T) {
	const repo = "reg.example.com/team/model"
	other := "@" + string(digest.FromString("other"))
	tests := []struct {
		rule, signed, requested string
		want                    error
	}{
		// The default: matchRepoDigestOrExact, but a signature without a reference is accepted.
		{"", "", repo + ":v1", nil},
		{"", repo + ":v1", repo + ":v1", nil},
		{"", repo + ":v1", repo + ":v2", ErrOtherReference},
		{"", repo + ":latest", repo, nil},
		{"", repo + ":v1", repo + atDigest, nil},
		{"", repo + ":v1", repo + ":v2" + atDigest, nil},
		{"", repo, repo + atDigest, nil},
		{"", repo, repo + ":v1", ErrOtherReference},
		{"", repo + atDigest, repo + atDigest, nil},
		{"", repo + atDigest, repo + ":v1", ErrOtherReference},
		{"", repo + ":v1", repo + "2:v1", ErrOtherReference},
		{"", repo + ":v1", repo + "2" + atDigest, ErrOtherReference},
		{"", repo + ":v1", "reg.example.com:5000/team/model:v1", ErrOtherReference},
		{"", repo + ":v1", "REG.example.com/team/model:v1", nil},
		{"", repo + ":v1", "team/model:v1", nil}, // the store's owner chose the local name
		{"", "team/model:v1", repo + ":v1", sigstore.ErrBundle},
		{"", "not a name", repo + ":v1", sigstore.ErrBundle},
		{"", "docker.io/llama:v1", "index.docker.io/library/llama:v1", nil},
		{"", "docker.io/me/llama:v1", "docker.io/llama:v1", ErrOtherReference},

		{"matchRepoDigestOrExact", "", repo + ":v1", ErrNoReference},
		{"matchRepoDigestOrExact", "", repo + atDigest, ErrNoReference},
		{"matchRepoDigestOrExact", repo + ":v1", repo + ":v1", nil},
		{"matchRepoDigestOrExact", repo + ":v1", repo + atDigest, nil},
		{"matchRepoDigestOrExact", repo + ":v1", repo + ":v2", ErrOtherReference},
		{"matchRepoDigestOrExact", repo + ":v1", "team/model:v1", ErrOtherReference},

		{"matchExact", repo + ":v1", repo + ":v1", nil},
		{"matchExact", repo + ":v1", repo + ":v2", ErrOtherReference},
		{"matchExact", repo + ":v1", repo + atDigest, ErrOtherReference},
		{"matchExact", repo + atDigest, repo + atDigest, nil},
		{"matchExact", repo + other, repo + atDigest, ErrOtherReference},
		{"matchExact", repo, repo + ":latest", ErrOtherReference},
		{"matchExact", "", repo + ":v1", ErrNoReference},

		{"matchRepository", repo + ":v1", repo + ":v2", nil},
		{"matchRepository", repo, repo + ":v2", nil},
		{"matchRepository", repo + "2:v1", repo + ":v1", ErrOtherReference},
		{"matchRepository", "", repo + ":v1", ErrNoReference},

		{"exactReference=" + repo + ":v1", repo + ":v1", "mirror.example.com/a:v9", nil},
		{"exactReference=" + repo + ":v1", repo + ":v1", "local", nil},
		{"exactReference=" + repo + ":v1", repo + ":v2", repo + ":v2", ErrOtherReference},
		{"exactReference=" + repo, repo + ":latest", "local", nil},
		{"exactReference=" + repo + atDigest, repo + atDigest, "local", nil},
		{"exactReference=" + repo + ":v1", "", repo + ":v1", ErrNoReference},

		{"exactRepository=" + repo, repo + ":v7", "mirror.example.com/a:v9", nil},
		{"exactRepository=" + repo, "mirror.example.com/a:v9", "mirror.example.com/a:v9", ErrOtherReference},

		{"remapIdentity=mirror.example.com/hub=reg.example.com", repo + ":v1", "mirror.example.com/hub/team/model:v1", nil},
		{"remapIdentity=mirror.example.com/hub=reg.example.com", repo + ":v1", "mirror.example.com/hub/team/model:v2",
			ErrOtherReference},
		{"remapIdentity=mirror.example.com/hub=reg.example.com", repo + ":v1", "mirror.example.com/hub/team/model" + atDigest,
			nil},
		{"remapIdentity=mirror.example.com/hub=reg.example.com", repo + ":v1", "mirror.example.com/hubble/team/model:v1",
			ErrOtherReference},
		{"remapIdentity=mirror.example.com/hub=reg.example.com", repo + ":v1", repo + ":v1", nil},
		{"remapIdentity=mirror.example.com/hub=reg.example.com", "", "mirror.example.com/hub/team/model:v1", ErrNoReference},
		{"remapIdentity=a.example.com=reg.example.com/x,mirror.example.com/team/model=" + repo, repo + ":v1",
			"mirror.example.com/team/model:v1", nil},
		{"remapIdentity=mirror.example.com=docker.io", "docker.io/library/llama:v1", "mirror.example.com/llama:v1", nil},
	}
	for _, tt := range tests {
		p, err := ParseIdentity(tt.rule)
		if err != nil {
			t.Errorf("rule %q: %v", tt.rule, err)
			continue
		}
		requested, err := manifest.ParseName(tt.requested)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(tt.signed, requested); !errors.Is(err, tt.want) {
			t.Errorf("rule %q, signed %q, asked for %q: %v, want %v", tt.rule, tt.signed, tt.requested, err, tt.want)
		}
	}
}

func TestIdentityErrors(t *testing.T) {
	for _, rule := range []string{
		"nonsense", "matchexact", "matchExact=", "matchExact=reg.example.com/a", "exactReference", "exactReference=",
		"exactReference=team/model:v1", "exactReference=reg.example.com/a b", "exactRepository=reg.example.com/a:v1",
		"exactRepository=model",
		"exactRepository=reg.example.com/a" + atDigest, "remapIdentity", "remapIdentity=reg.example.com",
		"remapIdentity=reg.example.com=",
		"remapIdentity=local=reg.example.com", "remapIdentity=a.example.com/x:v1=reg.example.com",
		"remapIdentity=a.example.com=b.example.com,",
		"remapIdentity=a.example.com/=b.example.com", "\x1b[31mred",
	} {
		_, err := ParseIdentity(rule)
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("rule %q: %v, want one line", rule, err)
		}
	}
}

func TestReference(t *testing.T) {
	for name, want := range map[string]string{
		"team/model":                         "", // means nothing elsewhere
		"reg.example.com/team/model":         "reg.example.com/team/model:latest",
		"reg.example.com/m:v1":               "reg.example.com/m:v1",
		"reg.example.com/m" + atDigest:       "reg.example.com/m" + atDigest,
		"reg.example.com/m:v1" + atDigest:    "reg.example.com/m:v1",
		"index.docker.io/llama:v1":           "docker.io/library/llama:v1",
		"LOCALHOST:5000/team/model:V1":       "localhost:5000/team/model:V1",
		"reg.example.com/latest":             "reg.example.com/latest:latest",
		"reg.example.com:443/team/model:443": "reg.example.com:443/team/model:443",
	} {
		n, err := manifest.ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := Reference(n); got != want {
			t.Errorf("%s is signed as %q, want %q", name, got, want)
		}
	}
}
