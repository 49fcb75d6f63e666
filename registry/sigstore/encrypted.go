package sigstore

import (
	"crypto/x509"
	"encoding/json"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"
)

// encrypted is the JSON form of a private key that `cosign generate-key-pair` writes (go-securesystemslib v0.11.0,
// package encrypted).
type encrypted struct {
	KDF struct {
		Name   string `json:"name"`
		Params struct {
			N int `json:"N"`
			R int `json:"r"`
			P int `json:"p"`
		} `json:"params"`
		Salt []byte `json:"salt"`
	} `json:"kdf"`
	Cipher struct {
		Name  string `json:"name"`
		Nonce []byte `json:"nonce"`
	} `json:"cipher"`
	Ciphertext []byte `json:"ciphertext"`
}

// Limits on the work that a key file may demand: scrypt needs 128*N*r bytes, and time in proportion to p. cosign writes
// 65536, 8, 1.
const (
	maxScryptN = 1 << 18
	maxScryptR = 16
	maxScryptP = 4
)

const (
	kdfScrypt       = "scrypt"
	cipherSecretbox = "nacl/secretbox"
	boxKeySize      = 32
	boxNonceSize    = 24
)

// readEncrypted decrypts and parses a key, which is in PKCS #8 form.
func readEncrypted(b []byte, password func() ([]byte, error)) (any, error) {
	var e encrypted
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("encrypted key: %v: %w", err, ErrKey)
	}
	p := e.KDF.Params
	switch {
	case e.KDF.Name != kdfScrypt || e.Cipher.Name != cipherSecretbox:
		return nil, fmt.Errorf("key encrypted by %s and %s, not %s and %s: %w",
			excerpt(e.KDF.Name), excerpt(e.Cipher.Name), kdfScrypt, cipherSecretbox, ErrKey)
	case len(e.Cipher.Nonce) != boxNonceSize:
		return nil, fmt.Errorf("encrypted key: a nonce of %d bytes, not %d: %w", len(e.Cipher.Nonce), boxNonceSize, ErrKey)
	case p.N < 2 || p.N > maxScryptN || p.R < 1 || p.R > maxScryptR || p.P < 1 || p.P > maxScryptP:
		return nil, fmt.Errorf("encrypted key: scrypt with N=%d r=%d p=%d is out of bounds: %w", p.N, p.R, p.P, ErrKey)
	}
	var pass []byte
	if password != nil {
		var err error
		if pass, err = password(); err != nil {
			return nil, err
		}
	}
	derived, err := scrypt.Key(pass, e.KDF.Salt, p.N, p.R, p.P, boxKeySize)
	if err != nil {
		return nil, fmt.Errorf("encrypted key: %v: %w", err, ErrKey)
	}
	plain, ok := secretbox.Open(nil, e.Ciphertext, (*[boxNonceSize]byte)(e.Cipher.Nonce), (*[boxKeySize]byte)(derived))
	if !ok {
		return nil, fmt.Errorf("decrypt the key: %w", ErrPassword)
	}
	key, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, fmt.Errorf("encrypted key: %v: %w", err, ErrKey)
	}
	return key, nil
}
