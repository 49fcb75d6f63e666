package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	userName = "ann"
	password = "correct horse"
)

// TestBasic uses a registry with a password file.
func TestBasic(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(file, []byte(userName+":"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testPrivateRegistry(t, startDistribution(t, fmt.Sprintf("auth: {htpasswd: {realm: interop, path: %s}}\n",
		file)), false)
}

// TestBearer uses a registry with a token server.
func TestBearer(t *testing.T) {
	s := newTokenServer(t)
	testPrivateRegistry(t, startDistribution(t, fmt.Sprintf(
		"auth: {token: {realm: %s/token, service: interop, issuer: interop, rootcertbundle: %s}}\n", s.url, s.bundle)), true)
	if !s.scoped {
		t.Error("no token with push permission was requested")
	}
}

// testPrivateRegistry pushes and pulls with and without credentials. With public, anybody may pull.
func testPrivateRegistry(t *testing.T, host string, public bool) {
	t.Helper()
	maker, stranger := newUser(t), newUser(t)
	name := host + "/team/model:v1"
	digest := maker.create(name, "llama-tied")

	refused := maker.ingotFails("push", name)
	for _, want := range []string{host, "ingot login"} {
		if !strings.Contains(refused, want) {
			t.Errorf("the error of a push without credentials does not say %s: %s", want, refused)
		}
	}
	out, errs, err := maker.try("wrong", ingot, "login", host, "-u", userName, "--password-stdin")
	if err == nil || strings.Contains(out+errs, "wrong\n") {
		t.Errorf("login with a wrong password: %v\n%s%s", err, out, errs)
	}
	maker.ingotWith(password, "login", host, "-u", userName, "--password-stdin")
	equal(t, "pushed digest", maker.ingot("push", name), digest)
	equal(t, "pulled digest", maker.ingot("pull", name), digest)
	equal(t, "what skopeo sees with ingot's login", maker.run("skopeo", "inspect", "--raw", "--tls-verify=false",
		"--authfile", filepath.Join(maker.home, "docker", "config.json"), "docker://"+name), maker.manifest(name))

	if public {
		equal(t, "pulled by a stranger", stranger.ingot("pull", name), digest)
	} else if got := stranger.ingotFails("pull", name); !strings.Contains(got, host) {
		t.Errorf("the error of a pull without credentials does not name the host: %s", got)
	}
	stranger.create(name, "llama-default")
	stranger.ingotFails("push", name)

	maker.ingot("logout", host)
	maker.create(name, "llama-default")
	maker.ingotFails("push", name)
}

// tokenServer signs tokens after docker's token specification, for one user. Anybody may pull.
type tokenServer struct {
	t      *testing.T
	key    *ecdsa.PrivateKey
	cert   []byte
	url    string
	bundle string // file with the certificate
	scoped bool
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "interop"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	s := &tokenServer{t: t, key: key, bundle: filepath.Join(t.TempDir(), "token.pem")}
	if s.cert, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert}),
		0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, given, ok := r.BasicAuth()
	known := ok && name == userName && given == password
	if ok && !known {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	var list []access
	for _, scopes := range r.URL.Query()["scope"] {
		for _, scope := range strings.Fields(scopes) {
			part := strings.SplitN(scope, ":", 3)
			if len(part) != 3 {
				continue
			}
			a := access{Type: part[0], Name: part[1], Actions: []string{}}
			for _, action := range strings.Split(part[2], ",") {
				if action == "pull" || known {
					a.Actions = append(a.Actions, action)
				}
				s.scoped = s.scoped || action == "push"
			}
			list = append(list, a)
		}
	}
	now := time.Now().Unix()
	token := s.sign(map[string]any{"typ": "JWT", "alg": "ES256",
		"x5c": []string{base64.StdEncoding.EncodeToString(s.cert)}},
		map[string]any{"iss": "interop", "sub": name, "aud": "interop", "iat": now, "nbf": now - 10, "exp": now + 300,
			"jti": rand.Text(), "access": list})
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 300})
}

// sign creates a JSON Web Token (RFC 7519) with ES256 (RFC 7518, section 3.4).
func (s *tokenServer) sign(header, claims map[string]any) string {
	var parts []string
	for _, v := range []any{header, claims} {
		b, err := json.Marshal(v)
		if err != nil {
			s.t.Error(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(b))
	}
	text := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(text))
	x, y, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		s.t.Error(err)
	}
	signature := append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
