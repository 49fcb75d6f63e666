package tunnel

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
)

// MinToken is the least length of a token, in bytes: 128 bits in hexadecimal digits.
const MinToken = 32

// Token is a secret that machines share. It is kept as a key, so that it cannot be logged.
type Token struct{ key []byte }

// NewToken returns the token of a text of at least MinToken bytes, which must be random.
func NewToken(text string) (Token, error) {
	if len(text) < MinToken {
		return Token{}, fmt.Errorf("the token has %d characters; it needs at least %d random ones, "+
			"such as those of `openssl rand -hex 32`", len(text), MinToken)
	}
	key, err := hkdf.Key(sha256.New, []byte(text), nil, "ingot tunnel token 1", sha256.Size)
	return Token{key}, err
}

// role is an end of a connection.
type role string

const (
	dialer   role = "dialer"
	listener role = "listener"
)

// bindingLabel is the label of channel binding "tls-exporter", RFC 9266.
const bindingLabel = "EXPORTER-Channel-Binding"

// proof returns what an end of a connection sends to prove that it has the token.
func (t Token) proof(state tls.ConnectionState, r role) ([]byte, error) {
	binding, err := state.ExportKeyingMaterial(bindingLabel, nil, 32)
	if err != nil {
		return nil, fmt.Errorf("bind a proof to the connection: %w", err)
	}
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(r))
	mac.Write(binding)
	return mac.Sum(nil), nil
}

// proves reports whether p is the proof of an end of a connection.
func (t Token) proves(p []byte, state tls.ConnectionState, r role) (bool, error) {
	want, err := t.proof(state, r)
	return err == nil && hmac.Equal(p, want), err
}
