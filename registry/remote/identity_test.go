package remote

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"golang.org/x/crypto/ssh"
)

// ollamaPeer issues tokens for signatures by one key, which it verifies over the bytes of the request. anonymous is how
// it treats requests without a signature: "refused"; "useless" for a token without permissions; or "reader" for one
// that permits reads.
func ollamaPeer(t *testing.T, public ed25519.PublicKey, anonymous string) *authPeer {
	var p *authPeer
	nonces := map[string]bool{}
	p = newAuthPeer(t, &authPeer{scheme: "Bearer", openPing: true, scope: "repository:a/model:pull,push",
		handler: func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/token" {
				if req.Header.Get("Authorization") == "Bearer anonymous" && anonymous == "reader" && req.Method == "GET" {
					fmt.Fprint(w, "ok")
					return true
				}
				return false
			}
			q := req.URL.Query()
			p.tokenQueries = append(p.tokenQueries, q)
			auth := req.Header.Get("Authorization")
			if auth == "" && anonymous != "refused" {
				fmt.Fprint(w, `{"token":"anonymous"}`)
				return true
			}
			key, sig, ok := strings.Cut(auth, ":")
			ts, _ := strconv.ParseInt(q.Get("ts"), 10, 64)
			nonce, err := base64.RawURLEncoding.DecodeString(q.Get("nonce"))
			want, _ := ssh.NewPublicKey(public)
			b, _ := base64.StdEncoding.DecodeString(sig)
			// The hash of the empty body.
			text := "GET,http://" + req.Host + req.URL.RequestURI() +
				",ZTNiMGM0NDI5OGZjMWMxNDlhZmJmNGM4OTk2ZmI5MjQyN2FlNDFlNDY0OWI5MzRjYTQ5NTk5MWI3ODUyYjg1NQ=="
			if !ok || err != nil || len(nonce) != 16 || nonces[string(nonce)] ||
				time.Since(time.Unix(ts, 0)).Abs() > time.Minute ||
				key != base64.StdEncoding.EncodeToString(want.Marshal()) || !ed25519.Verify(public, []byte(text), b) {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			nonces[string(nonce)] = true
			token := fmt.Sprintf("signed-%d", len(p.tokenQueries))
			p.tokens[token] = q["scope"]
			fmt.Fprintf(w, `{"token":%q}`, token)
			return true
		}})
	return p
}

func writeKey(t *testing.T, key any) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, block)
}

// lockedKey writes a key in the form of ssh-keygen with a passphrase; its encrypted part is zeros.
func lockedKey(t *testing.T, key ed25519.PrivateKey) string {
	t.Helper()
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	options := ssh.Marshal(struct {
		Salt   string
		Rounds uint32
	}{"0123456789abcdef", 16})
	b := ssh.Marshal(struct {
		CipherName, KdfName, KdfOpts string
		NumKeys                      uint32
		PubKey, PrivKeyBlock         []byte
	}{"aes256-ctr", "bcrypt", string(options), 1, public.Marshal(), make([]byte, 64)})
	return writePEM(t, &pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append([]byte("openssh-key-v1\x00"), b...)})
}

func writePEM(t *testing.T, block *pem.Block) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSignature(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	file := writeKey(t, private)
	for _, anonymous := range []string{"refused", "useless", "reader"} {
		p := ollamaPeer(t, public, anonymous)
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), IdentityFile: file})
		r := repositoryOf(t, c, p.host()+"/a/model", Push)
		wantSuccess(t, r, "GET", "blobs/x")
		if queries := p.tokenQueries; anonymous == "reader" && queries[0].Get("nonce") != "" {
			t.Error("a signature was sent where anonymous access suffices")
		}
		wantSuccess(t, r, "POST", "blobs/uploads/")
		p.revoke()
		before := p.tokenRequests()
		wantSuccess(t, r, "POST", "blobs/uploads/")
		if n := p.tokenRequests() - before; n != 1 {
			t.Errorf("%s: %d token requests after one that succeeded", anonymous, n)
		}
	}
}

func TestSignatureRefused(t *testing.T) {
	public, _, _ := ed25519.GenerateKey(rand.Reader)
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	for _, anonymous := range []string{"refused", "useless"} {
		p := ollamaPeer(t, public, anonymous)
		file := writeKey(t, other)
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), IdentityFile: file})
		_, err := repositoryOf(t, c, p.host()+"/a/model", Push).askFor("POST", "blobs/uploads/")
		var auth *AuthError
		if !errors.As(err, &auth) || auth.Key != file || !strings.Contains(err.Error(), "rejected the key "+file) {
			t.Errorf("%s: %v", anonymous, err)
		}
	}
}

// TestSignatureOnlyForRegistry: a signature reveals the user's identity, so it is sent only to a token server that is
// the registry itself.
func TestSignatureOnlyForRegistry(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	other := ollamaPeer(t, public, "refused")
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", realm: other.URL + "/token"})
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), IdentityFile: writeKey(t, private)})
	_, err := repositoryOf(t, c, p.host()+"/a/model", Push).askFor("GET", "blobs/x")
	if !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
	for _, q := range other.tokenQueries {
		if q.Get("nonce") != "" {
			t.Error("another host got a signature")
		}
	}
}

func TestIdentityFiles(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	text := filepath.Join(t.TempDir(), "text")
	os.WriteFile(text, []byte("hello"), 0o600)
	for _, test := range []struct{ file, err string }{
		{writeKey(t, private), ""},
		{lockedKey(t, private), "has a passphrase"},
		{writeKey(t, other), "is of type ecdsa-sha2-nistp256"},
		{text, "no OpenSSH private key"},
		{text + ".not", "no such file"},
	} {
		c := authClient(t, Options{IdentityFile: test.file})
		key, err := c.identity()
		if (key != nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", test.file, err, test.err)
		}
	}
	// A missing or unusable key at the default location is not an error.
	c := authClient(t, Options{})
	home, _ := os.UserHomeDir()
	if key, err := c.identity(); key != nil || err != nil {
		t.Error(key, err)
	}
	os.Mkdir(filepath.Join(home, ".ollama"), 0o700)
	os.WriteFile(filepath.Join(home, ".ollama", "id_ed25519"), []byte("hello"), 0o600)
	if key, err := c.identity(); key != nil || err != nil {
		t.Error(key, err)
	}
	b, _ := os.ReadFile(writeKey(t, private))
	os.WriteFile(filepath.Join(home, ".ollama", "id_ed25519"), append(b, '\n', '\n'), 0o600)
	if key, err := c.identity(); key == nil || err != nil {
		t.Error(key, err)
	}
	t.Setenv(IdentityEnv, text)
	if _, err := c.identity(); err == nil {
		t.Error("INGOT_SSH_KEY is not read")
	}
}

func TestSignatureText(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse("https://registry.ollama.ai/token?nonce=n&scope=repository%3Aa%3Apull&ts=1")
	got, err := requestSignature(key, "GET", u)
	if err != nil {
		t.Fatal(err)
	}
	public, sig, _ := strings.Cut(got, ":")
	wire, _ := base64.StdEncoding.DecodeString(public)
	if !bytes.Equal(wire, append([]byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"),
		private.Public().(ed25519.PublicKey)...)) {
		t.Errorf("public key %x", wire)
	}
	b, _ := base64.StdEncoding.DecodeString(sig)
	if !ed25519.Verify(private.Public().(ed25519.PublicKey),
		[]byte("GET,https://registry.ollama.ai/token?nonce=n&scope=repository%3Aa%3Apull&ts=1,"+
			"ZTNiMGM0NDI5OGZjMWMxNDlhZmJmNGM4OTk2ZmI5MjQyN2FlNDFlNDY0OWI5MzRjYTQ5NTk5MWI3ODUyYjg1NQ=="), b) {
		t.Error("the signature is of another text")
	}
}
