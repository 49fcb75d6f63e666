package sigstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestReadPrivateKey(t *testing.T) {
	pkcs8, public := newKey(t, "ecdsa")
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	sec1 := block(labelEC, must[[]byte](t)(x509.MarshalECPrivateKey(key)))
	large := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	p384, _ := newKey(t, "ecdsa384")
	tests := []struct {
		name string
		file []byte
		want string // part of the error; empty: success
	}{
		{"PKCS 8", pkcs8, ""},
		{"text before it", append([]byte("my key\n"), pkcs8...), ""},
		{"SEC 1", sec1, ""},
		{"SEC 1 as openssl ecparam writes it",
			append(block(labelECParameters, []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}), sec1...), ""},
		{"public", public, "needs the private one"},
		{"RSA", block(labelPrivate, must[[]byte](t)(x509.MarshalPKCS8PrivateKey(large))),
			"an RSA key, ECDSA P-256 and Ed25519"},
		{"P-384", p384, "an ECDSA key on P-384"},
		{"encrypted PKCS 8", block(labelEncryptedPKCS8, []byte{1}), "openssl pkcs8 -topk8 -nocrypt"},
		{"encrypted SEC 1", []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" +
			"AAAA\n-----END EC PRIVATE KEY-----\n"), "openssl pkcs8 -topk8 -nocrypt"},
		{"SSH", block(labelOpenSSH, []byte{1}), "ssh-keygen"},
		{"damaged", block(labelPrivate, []byte{1, 2, 3}), ""},
		{"no PEM", []byte("hello"), "not in PEM form"},
		{"empty", nil, "not in PEM form"},
		{"too large", make([]byte, maxKeyFile+1), "too many"},
		{"another block", block("DH PARAMETERS", nil), `a "DH PARAMETERS" block`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadPrivateKey(tt.file, nil)
			if tt.want == "" && tt.name != "damaged" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an ErrKey with %q", err, tt.want)
			}
		})
	}
}

func TestReadPublicKey(t *testing.T) {
	private, public := newKey(t, "ed25519")
	_, p384 := newKey(t, "ecdsa384")
	tests := []struct {
		name, want string
		file       []byte
	}{
		{"PKIX", "", public},
		{"private", "openssl pkey", private},
		{"certificate", "openssl x509", block(labelCertificate, nil)},
		{"P-384", "P-384", p384},
		{"damaged", "", block(labelPublic, []byte{1})},
		{"no PEM", "not in PEM form", []byte("ssh-ed25519 AAAA")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadPublicKey(tt.file)
			if tt.name == "PKIX" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an ErrKey with %q", err, tt.want)
			}
		})
	}
}

// encrypt encrypts a key as cosign does, with cheaper scrypt parameters.
func encrypt(t testing.TB, der []byte, password string, change func(*encrypted)) []byte {
	t.Helper()
	var e encrypted
	e.KDF.Name, e.Cipher.Name = kdfScrypt, cipherSecretbox
	e.KDF.Params.N, e.KDF.Params.R, e.KDF.Params.P = 16, 8, 1
	e.KDF.Salt, e.Cipher.Nonce = []byte("salt"), make([]byte, boxNonceSize)
	derived := must[[]byte](t)(scrypt.Key([]byte(password), e.KDF.Salt, 16, 8, 1, boxKeySize))
	e.Ciphertext = secretbox.Seal(nil, der, (*[boxNonceSize]byte)(e.Cipher.Nonce), (*[boxKeySize]byte)(derived))
	if change != nil {
		change(&e)
	}
	return must[[]byte](t)(json.Marshal(e))
}

func TestReadEncryptedKey(t *testing.T) {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key))
	errNoTerminal := errors.New("nobody there")
	reply := func(p string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(p), nil } }
	tests := []struct {
		name     string
		body     []byte
		password func() ([]byte, error)
		want     error
	}{
		{"right", encrypt(t, der, "secret", nil), reply("secret"), nil},
		{"wrong", encrypt(t, der, "secret", nil), reply("other"), ErrPassword},
		{"none given", encrypt(t, der, "", nil), nil, nil},
		{"not told", encrypt(t, der, "secret", nil), func() ([]byte, error) { return nil, errNoTerminal }, errNoTerminal},
		{"no JSON", []byte("x"), reply(""), ErrKey},
		{"another function", encrypt(t, der, "", func(e *encrypted) { e.KDF.Name = "argon2" }), reply(""), ErrKey},
		{"another cipher", encrypt(t, der, "", func(e *encrypted) { e.Cipher.Name = "aes" }), reply(""), ErrKey},
		{"much work", encrypt(t, der, "", func(e *encrypted) { e.KDF.Params.N = 1 << 30 }), reply(""), ErrKey},
		{"much memory", encrypt(t, der, "", func(e *encrypted) { e.KDF.Params.R = 1 << 20 }), reply(""), ErrKey},
		{"no work", encrypt(t, der, "", func(e *encrypted) { e.KDF.Params.N = 0 }), reply(""), ErrKey},
		{"odd work", encrypt(t, der, "", func(e *encrypted) { e.KDF.Params.N = 17 }), reply(""), ErrKey},
		{"short nonce", encrypt(t, der, "", func(e *encrypted) { e.Cipher.Nonce = nil }), reply(""), ErrKey},
		{"not a key inside", encrypt(t, []byte("x"), "", nil), reply(""), ErrKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, label := range []string{labelSigstore, labelCosign} {
				k, err := ReadPrivateKey(block(label, tt.body), tt.password)
				if !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
				if err == nil && k.Public().Kind() != "ECDSA P-256" {
					t.Errorf("it is %s", k.Public().Kind())
				}
			}
		})
	}
}
