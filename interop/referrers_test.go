package interop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	bundleType     = "application/vnd.dev.sigstore.bundle.v0.3+json"
	provenanceType = "application/vnd.ingotml.provenance.v1+json"
)

// TestReferrers: an attached report, a signature and the provenance record are pushed with their model. They are found
// through the referrers API, or through the referrers tag.
func TestReferrers(t *testing.T) {
	eachRegistry(t, func(t *testing.T, host string) {
		maker, reader := newUser(t), newUser(t)
		name := host + "/team/model:v1"
		digest := maker.create(name, "llama-tied")
		report := filepath.Join(maker.home, "report.json")
		writeFile(t, report, `{"accuracy": 0.5}`)
		maker.ingot("attach", name, report, "--artifact-type", "application/vnd.example.report+json")
		private, public := keyPair(t, "ecdsa")
		maker.ingot("sign", name, "--key", private)
		maker.ingot("push", name)

		// Ask the registry directly, by the API or the tag.
		url, _ := repository(t, name)
		resp, b := get(t, url+"/referrers/"+digest)
		if resp.StatusCode != http.StatusOK {
			resp, b = get(t, url+"/manifests/"+strings.Replace(digest, ":", "-", 1), "Accept", ocispec.MediaTypeImageIndex)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("neither the referrers API nor the referrers tag: status %d", resp.StatusCode)
			}
		}
		var idx ocispec.Index
		if err := json.Unmarshal(b, &idx); err != nil {
			t.Fatal(err)
		}
		types := map[string]bool{}
		for _, d := range idx.Manifests {
			types[d.ArtifactType] = true
		}
		if !types["application/vnd.example.report+json"] || !types[bundleType] || !types[provenanceType] || len(types) != 3 {
			t.Errorf("referrers in the registry: %s", b)
		}

		if got := reader.ingot("discover", name, "--json"); !strings.Contains(got, "application/vnd.example.report+json") ||
			!strings.Contains(got, bundleType) {
			t.Errorf("discover: %s", got)
		}
		equal(t, "signed pull", reader.ingot("pull", name, "--require-signature", "--key", public), digest)
		reader.ingot("verify", name, "--key", public)
		_, other := keyPair(t, "ecdsa")
		stranger := newUser(t)
		stranger.ingotFails("pull", name, "--require-signature", "--key", other)
		if got := stranger.ingot("ls"); strings.Contains(got, host) {
			t.Errorf("the store holds a model without a signature by the key:\n%s", got)
		}
	})
}

// keyPair writes a private key (PKCS #8) and its public key (PKIX) as PEM files.
func keyPair(t *testing.T, kind string) (private, public string) {
	t.Helper()
	var key crypto.Signer
	var err error
	if kind == "ed25519" {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public = filepath.Join(dir, "private.pem"), filepath.Join(dir, "public.pem")
	writeFile(t, private, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	writeFile(t, public, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})))
	return private, public
}
