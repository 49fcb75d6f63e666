package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
)

// certPeer is a TLS server that asks for a client's certificate, and records whether it got one.
type certPeer struct {
	*httptest.Server
	handle http.HandlerFunc // nil: okHandler

	mu    sync.Mutex
	shown []string // path and name in the certificate
}

func newCertPeer(t *testing.T, auth tls.ClientAuthType) *certPeer {
	t.Helper()
	p := &certPeer{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := "nobody"
		if len(req.TLS.PeerCertificates) > 0 {
			name = req.TLS.PeerCertificates[0].Subject.CommonName
		}
		p.mu.Lock()
		p.shown = append(p.shown, req.URL.Path+" "+name)
		p.mu.Unlock()
		if p.handle != nil {
			p.handle(w, req)
			return
		}
		okHandler(w, req)
	}))
	p.TLS = &tls.Config{ClientAuth: auth}
	p.EnableHTTP2 = true
	p.Config.ErrorLog = rt.Quiet()
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *certPeer) host() string { return strings.TrimPrefix(p.URL, "https://") }

// got returns who the peer saw, once each.
func (p *certPeer) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, s := range p.shown {
		seen[s[strings.LastIndexByte(s, ' ')+1:]] = true
	}
	return strings.Join(sortedKeys(seen), " ")
}

func sortedKeys(m map[string]bool) (keys []string) {
	for _, name := range []string{"ann", "nobody"} {
		if m[name] {
			keys = append(keys, name)
		}
	}
	return keys
}

// putCertificates writes a folder as docker and skopeo lay it out: the authority of test servers, and ann's own.
func putCertificates(t *testing.T, dir string, p *certPeer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ann"},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.crt":      {Type: "CERTIFICATE", Bytes: p.Certificate().Raw},
		"client.cert": {Type: "CERTIFICATE", Bytes: cert},
		"client.key":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificates: a folder with certificates is found where skopeo, docker and podman have it.
func TestCertificates(t *testing.T) {
	for _, c := range []struct {
		what, folder string
		flag         string // of CertDir, under the same root
		env          string
		want         bool
	}{
		{"the flag", "certs", "certs", "", true},
		{"the flag, a folder of each host", "certs/HOST", "certs", "", true},
		{"podman's", ".config/containers/certs.d/HOST", "", "", true},
		{"podman's, elsewhere", "xdg/containers/certs.d/HOST", "", "xdg", true},
		{"docker's, rootless", ".config/docker/certs.d/HOST", "", "", true},
		{"Docker Desktop's", ".docker/certs.d/HOST", "", "", true},
		{"another host's", ".config/containers/certs.d/127.0.0.1", "", "", false},
		{"the flag instead of podman's", ".config/containers/certs.d/HOST", "empty", "", false},
	} {
		p := newCertPeer(t, tls.RequireAnyClientCert)
		root := t.TempDir()
		at := func(path string) string {
			return filepath.Join(root, filepath.FromSlash(strings.ReplaceAll(path, "HOST", p.host())))
		}
		os.Mkdir(at("empty"), 0o755)
		putCertificates(t, at("empty/other.example"), p)
		putCertificates(t, at(c.folder), p)
		t.Setenv("XDG_CONFIG_HOME", "")
		if c.env != "" {
			t.Setenv("XDG_CONFIG_HOME", at(c.env))
		}
		opts := Options{Keychain: rt.AnonymousKeychain()}
		if c.flag != "" {
			opts.CertDir = at(c.flag)
		}
		client := authClient(t, opts)
		t.Setenv("HOME", root)
		r := repositoryOf(t, client, p.host()+"/a/model", Pull)
		_, err := r.askFor("GET", "blobs/x")
		if (err == nil) != c.want || c.want && p.got() != "ann" {
			t.Errorf("%s: %v; shown: %s", c.what, err, p.got())
		}
	}
}

// TestCertificatesForOwnHostOnly: the user's certificate is shown to the registry, and neither to what it redirects to,
// nor to its token server elsewhere, nor to a mirror. The authorities apply to them, as in docker.
func TestCertificatesForOwnHostOnly(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := t.TempDir()
	for what, handle := range map[string]func(p, other *certPeer) http.HandlerFunc{
		"a redirect": func(p, other *certPeer) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/v2/" {
					return
				}
				http.Redirect(w, req, other.URL+"/v2/a/model/blobs/x", http.StatusTemporaryRedirect)
			}
		},
		"a redirect back": func(p, other *certPeer) http.HandlerFunc {
			other.handle = func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, p.URL+"/back", http.StatusFound)
			}
			return func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/v2/" || req.URL.Path == "/back" {
					okHandler(w, req)
					return
				}
				http.Redirect(w, req, other.URL+"/v2/a/model/blobs/x", http.StatusTemporaryRedirect)
			}
		},
		"a token server": func(p, other *certPeer) http.HandlerFunc {
			other.handle = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"t"}`) }
			return func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Authorization") == "" {
					w.Header().Set("WWW-Authenticate", `Bearer realm="`+other.URL+`/token"`)
					w.WriteHeader(401)
					return
				}
				okHandler(w, req)
			}
		},
	} {
		p, other := newCertPeer(t, tls.RequireAnyClientCert), newCertPeer(t, tls.RequestClientCert)
		putCertificates(t, dir, p)
		p.handle = handle(p, other)
		client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CertDir: dir})
		wantSuccess(t, repositoryOf(t, client, p.host()+"/a/model", Pull), "GET", "blobs/x")
		if p.got() != "ann" || other.got() != "nobody" {
			t.Errorf("%s: the registry saw %s, the other host %s", what, p.got(), other.got())
		}
	}

	p, mirror := newCertPeer(t, tls.RequireAnyClientCert), newCertPeer(t, tls.RequestClientCert)
	putCertificates(t, dir, p)
	caFile := filepath.Join(dir, "ca.crt")
	client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CertDir: dir, CAFile: caFile,
		Mirrors: []Mirror{{Host: p.host(), Mirror: mirror.host()}}})
	wantSuccess(t, repositoryOf(t, client, p.host()+"/a/model", Pull), "GET", "blobs/x")
	if mirror.got() != "nobody" {
		t.Errorf("the mirror saw %s", mirror.got())
	}
}

// TestNoCertificate: a server that requires a certificate is named as such, at once. A proxy with TLS gets none.
func TestNoCertificate(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := newCertPeer(t, tls.RequireAnyClientCert)
		p.TLS.MaxVersion = version
		dir := t.TempDir()
		putCertificates(t, dir, p)
		client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CAFile: filepath.Join(dir, "ca.crt")})
		_, err := repositoryOf(t, client, p.host()+"/a/model", Pull).askFor("GET", "blobs/x")
		if err == nil || Temporary(err) || !errors.Is(err, ErrClientCertificate) {
			t.Errorf("%x: %v", version, err)
		}
	}
	p, proxy := newCertPeer(t, tls.RequireAnyClientCert), newCertPeer(t, tls.RequestClientCert)
	dir := t.TempDir()
	putCertificates(t, dir, p)
	client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), CertDir: dir})
	at, _ := url.Parse(proxy.URL)
	client.Net.Base.Proxy = http.ProxyURL(at)
	_, err := repositoryOf(t, client, p.host()+"/a/model", Pull).askFor("GET", "blobs/x")
	if !errors.Is(err, ErrClientCertificate) || len(proxy.shown) > 0 || !strings.Contains(err.Error(), "NO_PROXY") {
		t.Errorf("a proxy with TLS saw %q: %v", proxy.shown, err)
	}
}

// TestBrokenCertificates: what is wrong in a folder is an error that names the file, or a warning where ingot found the
// folder by itself.
func TestBrokenCertificates(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	for what, c := range map[string]struct {
		damage func(dir string) error
		says   string
	}{
		"no key": {func(dir string) error { return os.Remove(filepath.Join(dir, "client.key")) },
			"client.key is not there"},
		"no certificate": {func(dir string) error { return os.Remove(filepath.Join(dir, "client.cert")) },
			"client.cert is not there"},
		"no PEM": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.crt"), []byte("s3cret"), 0o600)
		}, "b.crt holds no PEM"},
		"another key": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "client.key"), []byte("s3cret"), 0o600)
		}, "client.key"},
	} {
		for _, automatic := range []bool{false, true} {
			p := newCertPeer(t, tls.RequestClientCert)
			root := t.TempDir()
			dir := filepath.Join(root, ".docker", "certs.d", p.host())
			putCertificates(t, dir, p)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			var warned []string
			opts := Options{Keychain: rt.AnonymousKeychain(), CertDir: dir,
				Warn: func(_ string, err error) { warned = append(warned, err.Error()) }}
			if automatic {
				opts.CertDir = ""
			}
			client := authClient(t, opts)
			t.Setenv("HOME", root)
			h, err := client.host(p.host())
			text := strings.Join(warned, "\n")
			if !automatic {
				text = fmt.Sprint(err)
			}
			if (err == nil) != automatic || !strings.Contains(text, c.says) || strings.Contains(text, "s3cret") {
				t.Errorf("%s, automatic %v: %v, warned of %q", what, automatic, err, warned)
			}
			if automatic && h.certificates.Config(nil, true).RootCAs == nil {
				t.Errorf("%s: the rest of the folder is lost", what)
			}
		}
	}
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "absent")} {
		_, err := authClient(t, Options{CertDir: dir}).host("r.example")
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
