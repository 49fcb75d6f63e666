package interop

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestCosign: cosign verifies ingot's signatures with both kinds of keys, and ingot verifies cosign's. There is no
// network except the registry, and no transparency log.
func TestCosign(t *testing.T) {
	if testing.Short() {
		t.Skip("cosign takes minutes to build: the long form runs this")
	}
	eachRegistry(t, func(t *testing.T, host string) {
		if strings.HasSuffix(t.Name(), "olareg-without-referrers") {
			t.Skip("it responds 405 where distribution-spec v1.1.1 demands 404, so cosign does not look for the " +
				"referrers tag; distribution covers a registry without the API")
		}
		for _, kind := range []string{"ecdsa", "ed25519"} {
			t.Run(kind, func(t *testing.T) { testCosignVerify(t, host+"/"+kind+"/model:v1", kind) })
		}
		t.Run("certificate", func(t *testing.T) { testCosignCertificate(t, host+"/certified/model:int8") })
		t.Run("cosign-key", func(t *testing.T) { testCosignSign(t, host+"/theirs/model:v1") })
	})
}

func testCosignVerify(t *testing.T, name, kind string) {
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
		t.Errorf("cosign accepts another key: %s%s", out, errs)
	}
}

// testCosignSign also uses a key file that cosign created, encrypted with an empty password.
func testCosignSign(t *testing.T, name string) {
	u := newUser(t)
	prefix := filepath.Join(u.home, "theirs")
	u.run("cosign", "generate-key-pair", "--output-key-prefix", prefix)
	private, public := prefix+".key", prefix+".pub"

	digest := u.create(name, "llama-tied")
	u.ingot("push", name)
	subject := strings.TrimSuffix(name, ":v1") + "@" + digest
	sign := []string{"sign", "--key", private, "--use-signing-config=false", "--tlog-upload=false", "--yes",
		"--allow-http-registry"}
	u.run("cosign", append(sign, subject)...)
	reader := newUser(t)
	strict := []string{"--require-signature", "--key", public, "--signed-identity", "matchRepoDigestOrExact"}
	line := reader.ingotFails(append([]string{"pull", name}, strict...)...)
	if !strings.Contains(line, "signed for no reference") {
		t.Errorf("cosign's signature without a reference: %s", line)
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

// testCosignCertificate: cosign verifies the certificate of create --max-kl as an attestation, and reads its figures.
func testCosignCertificate(t *testing.T, name string) {
	u := newUser(t)
	u.more = []string{"INGOT_ENGINE=" + engine(t)}
	private, public := keyPair(t, "ecdsa")
	u.create(name, "demo", "-q", "int8", "--max-kl", "0.01", "--key", private)
	u.ingot("push", name)
	verify := func(public, kind string) []string {
		return []string{"verify-attestation", "--key", public, "--type", kind, "--insecure-ignore-tlog=true",
			"--allow-http-registry", name}
	}
	const kind = "https://github.com/ingotml/ingot/quality/v1"
	var envelope struct{ Payload []byte }
	out := u.run("cosign", verify(public, kind)...)
	err := json.Unmarshal([]byte(out), &envelope)
	if err != nil || !strings.Contains(string(envelope.Payload), `"mean_kl":`) {
		t.Errorf("cosign printed %s: %v", out, err)
	}
	_, other := keyPair(t, "ecdsa")
	for what, args := range map[string][]string{
		"another key":  verify(other, kind),
		"another type": verify(public, "https://slsa.dev/provenance/v1"),
	} {
		if out, errs, err := u.try("", tool(t, "cosign"), args...); err == nil {
			t.Errorf("cosign accepts %s: %s%s", what, out, errs)
		}
	}
}

func cosignVerifyArgs(name, public string) []string {
	return []string{"verify", "--key", public, "--insecure-ignore-tlog=true", "--allow-http-registry", name}
}

func (u *user) cosignVerify(name, public string, more ...string) string {
	u.t.Helper()
	return u.run("cosign", append(cosignVerifyArgs(name, public), more...)...)
}
