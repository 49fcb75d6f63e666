package sigstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
)

// cosigned is the digest of the manifest that cosign signed: testdata/README.md.
const cosigned = digest.Digest("sha256:5fbd0211af02d0894e09d7c2dcf5a5e2419b2cabdcece1e7857874ff839100a9")

// TestCosign decrypts cosign's keys and verifies its signatures, which are Ed25519ph for Ed25519 keys.
func TestCosign(t *testing.T) {
	for kind, password := range map[string]string{"ecdsa": "secret", "ed25519": ""} {
		t.Run(kind, func(t *testing.T) {
			read := func(suffix string) []byte {
				return must[[]byte](t)(os.ReadFile(filepath.Join("testdata", "cosign-"+kind+suffix)))
			}
			public := must[*PublicKey](t)(ReadPublicKey(read(".pub")))
			if _, err := public.Verify(read(".bundle.json"), cosigned); err != nil {
				t.Error(err)
			}
			if _, err := public.Verify(read(".bundle.json"), subjectOne); !errors.Is(err, ErrSubject) {
				t.Errorf("for another manifest: %v, want ErrSubject", err)
			}
			private := must[*PrivateKey](t)(ReadPrivateKey(read(".key"),
				func() ([]byte, error) { return []byte(password), nil }))
			if private.Public().Hint() != public.Hint() {
				t.Errorf("the private key is %s, the public one %s", private.Public().Hint(), public.Hint())
			}
			if _, err := public.Verify(sign(t, private, cosigned), cosigned); err != nil {
				t.Error(err)
			}
			_, err := ReadPrivateKey(read(".key"), func() ([]byte, error) { return []byte("other"), nil })
			if !errors.Is(err, ErrPassword) {
				t.Errorf("with another password: %v, want ErrPassword", err)
			}
		})
	}
}
