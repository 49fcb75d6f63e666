package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

// IdentityEnv is the environment variable that names the SSH key for Ollama's registries, if [Options.IdentityFile] is
// empty.
const IdentityEnv = "INGOT_SSH_KEY"

// signedToken requests a token with a signature instead of a password, as Ollama's registries require. An OpenSSH key
// signs the string "GET,URL,base64(hex(SHA-256 of the empty body))". It returns nil if there is no key, or if the token
// server is not the registry itself: a signature reveals the user's identity.
func (h *host) signedToken(ctx context.Context, challenge map[string]string, scopes []string) (*token, error) {
	realm, err := h.realm(challenge)
	if err != nil || !h.owns(realm) {
		return nil, err
	}
	key, err := h.c.identity()
	if key == nil {
		return nil, err
	}
	t, err := Retry(ctx, h.attempts(), func() (*token, error) {
		return h.signedTokenOnce(ctx, key, realm, challenge, scopes)
	})
	if errors.Is(err, ErrUnauthorized) {
		err = &AuthError{Host: h.name, Given: true, Key: h.c.identityFile(), Err: err}
	}
	return t, err
}

func (h *host) signedTokenOnce(ctx context.Context, key ssh.Signer, realm *url.URL, challenge map[string]string,
	scopes []string) (*token, error) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	u := withQuery(realm, challenge, scopes, url.Values{
		"ts":    {strconv.FormatInt(time.Now().Unix(), 10)},
		"nonce": {base64.RawURLEncoding.EncodeToString(nonce)},
	})
	req, err := newRequest(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	header, err := requestSignature(key, req.Method, u)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", header)
	return h.askToken(req)
}

// requestSignature returns the Authorization header of a request without a body: the public key and the signature.
func requestSignature(key ssh.Signer, method string, u *url.URL) (string, error) {
	nothing := sha256.Sum256(nil)
	text := method + "," + u.String() + "," + base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(nothing[:])))
	sig, err := key.Sign(rand.Reader, []byte(text))
	if err != nil {
		return "", fmt.Errorf("sign a token request: %w", err)
	}
	return base64.StdEncoding.EncodeToString(key.PublicKey().Marshal()) + ":" +
		base64.StdEncoding.EncodeToString(sig.Blob), nil
}

// identity reads the user's key. It returns nil if there is none. An unusable key is an error only if the user chose
// its file.
func (c *Client) identity() (ssh.Signer, error) {
	file := c.identityFile()
	if file == "" {
		return nil, nil
	}
	key, err := readIdentity(file)
	if err != nil && c.opts.IdentityFile == "" && os.Getenv(IdentityEnv) == "" {
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, c.Skipped("", err)
		}
		return nil, nil
	}
	return key, err
}

func readIdentity(file string) (ssh.Signer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key for Ollama's registries: %w", err)
	}
	key, err := ssh.ParsePrivateKey(bytes.TrimSpace(b))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("the key %s has a passphrase, which is not supported; set %s to another key",
			file, IdentityEnv)
	case err != nil:
		return nil, fmt.Errorf("%s holds no OpenSSH private key; set %s to another key", file, IdentityEnv)
	case key.PublicKey().Type() != ssh.KeyAlgoED25519:
		return nil, fmt.Errorf("the key %s is of type %s, not %s; set %s to another key",
			file, key.PublicKey().Type(), ssh.KeyAlgoED25519, IdentityEnv)
	}
	return key, nil
}

func (c *Client) identityFile() string {
	if file := cmp.Or(c.opts.IdentityFile, os.Getenv(IdentityEnv)); file != "" {
		return file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".ollama", "id_ed25519")
}
