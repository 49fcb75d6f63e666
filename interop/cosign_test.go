package interop

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCosign: cosign verifies what ingot signed, with both kinds of keys, and ingot what cosign signed; a registry with the referrers
// API and one without. No network but the registry, no transparency log.
func TestCosign(t *testing.T) {
	if testing.Short() {
		t.Skip("cosign's build takes minutes: the long form runs this")
	}
	eachRegistry(t, func(t *testing.T, host string) {
		if strings.HasSuffix(t.Name(), "olareg-without-referrers") {
			t.Skip("it answers 405 where distribution-spec v1.1.1 says 404, and then cosign does not look for the tag; distribution has none either")
		}
		for _, kind := range []string{"ecdsa", "ed25519"} {
			t.Run(kind, func(t *testing.T) { cosignReads(t, host+"/"+kind+"/model:v1", kind) })
		}
		t.Run("cosign-key", func(t *testing.T) { cosignSigns(t, host+"/theirs/model:v1") })
	})
}

func cosignReads(t *testing.T, name, kind string) {
	u := newUser(t)
	private, public := keyPair(t, kind)
	digest := u.create(name, "llama-tied")
	u.ingot("sign", name, "--key", private)
	u.ingot("push", name)
	out := u.cosignVerify(name, public)
	if !strings.Contains(out, digest) {
		t.Errorf("cosign verified another digest than %s: %s", digest, out)
	}
	// The reference that ingot records is an annotation that cosign compares.
	if out := u.cosignVerify(name, public, "--annotations", "docker-reference="+name); !strings.Contains(out, digest) {
		t.Errorf("cosign verified another digest than %s: %s", digest, out)
	}
	wrong := append(cosignVerifyArgs(name, public), "--annotations", "docker-reference="+name+"0")
	if out, errs, err := u.try("", tool(t, "cosign"), wrong...); err == nil {
		t.Errorf("cosign accepts another reference: %s%s", out, errs)
	}
	_, other := keyPair(t, kind)
	if out, errs, err := u.try("", tool(t, "cosign"), cosignVerifyArgs(name, other)...); err == nil {
		t.Errorf("cosign accepts another's key: %s%s", out, errs)
	}
}

// cosignSigns also uses the key file that cosign makes, encrypted with an empty password.
func cosignSigns(t *testing.T, name string) {
	u := newUser(t)
	prefix := filepath.Join(u.home, "theirs")
	u.run("cosign", "generate-key-pair", "--output-key-prefix", prefix)
	private, public := prefix+".key", prefix+".pub"

	digest := u.create(name, "llama-tied")
	u.ingot("push", name)
	subject := strings.TrimSuffix(name, ":v1") + "@" + digest
	sign := []string{"sign", "--key", private, "--use-signing-config=false", "--tlog-upload=false", "--yes", "--allow-http-registry"}
	u.run("cosign", append(sign, subject)...)
	reader := newUser(t)
	strict := []string{"--require-signature", "--key", public, "--signed-identity", "matchRepoDigestOrExact"}
	if line := reader.ingotFails(append([]string{"pull", name}, strict...)...); !strings.Contains(line, "signed for no reference") {
		t.Errorf("a signature of cosign without a reference: %s", line)
	}
	equal(t, "pulled digest, signed by cosign", reader.ingot("pull", name, "--require-signature", "--key", public), digest)
	reader.ingot("verify", name, "--key", public)

	u.run("cosign", append(sign, "--annotations", "docker-reference="+name, subject)...)
	named := newUser(t)
	equal(t, "pulled digest, named by cosign", named.ingot(append([]string{"pull", name}, strict...)...), digest)

	second := strings.TrimSuffix(name, "v1") + "v2"
	digest = u.create(second, "llama-default")
	u.ingot("sign", second, "--key", private)
	u.ingot("push", second)
	if out := u.cosignVerify(second, public); !strings.Contains(out, digest) {
		t.Errorf("cosign verified another digest than %s: %s", digest, out)
	}
}

func cosignVerifyArgs(name, public string) []string {
	return []string{"verify", "--key", public, "--insecure-ignore-tlog=true", "--allow-http-registry", name}
}

func (u *user) cosignVerify(name, public string, more ...string) string {
	u.t.Helper()
	return u.run("cosign", append(cosignVerifyArgs(name, public), more...)...)
}
