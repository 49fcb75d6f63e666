package certs

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/certs/certstest"
)

// TestFaults checks that each way to give wrong files is one clear error that names the file.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	certificate, key := certstest.Make(t, "a", time.Now().Add(time.Hour))
	_, otherKey := certstest.Make(t, "b", time.Now().Add(time.Hour))
	locked := []byte(strings.ReplaceAll(string(key), "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"))
	old := []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\n" +
		"AAAA\n-----END EC PRIVATE KEY-----\n")
	damaged := []byte(strings.Replace(string(certificate), "MII", "AAA", 1))
	both := append(append([]byte(nil), key...), certificate...)
	large := append(certificate, strings.Repeat("\n", limits.CertificateFile)...)
	for name, c := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"right":       {certificate, key, ""},
		"one file":    {both, both, ""},
		"other key":   {certificate, otherKey, "cert.pem and DIR/key.pem: the key does not belong to the certificate"},
		"swapped":     {key, certificate, "cert.pem has a key instead of a certificate"},
		"two certs":   {certificate, certificate, "key.pem has a certificate instead of a key"},
		"no PEM":      {[]byte("x"), key, "cert.pem has no certificate in PEM form"},
		"empty key":   {certificate, nil, "key.pem has no key in PEM form"},
		"with a lock": {certificate, locked, "key.pem: the key is encrypted; store it without a password"},
		"old lock":    {certificate, old, "key.pem: the key is encrypted"},
		"damaged":     {damaged, key, "cert.pem and DIR/key.pem: "},
		"large":       {large, key, "cert.pem has more than 1048576 bytes"},
	} {
		certstest.Write(t, filepath.Join(dir, "cert.pem"), c.cert)
		certstest.Write(t, filepath.Join(dir, "key.pem"), c.key)
		_, err := Load(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), t.Logf)
		want := filepath.ToSlash(dir) + "/" + strings.ReplaceAll(c.want, "DIR", filepath.ToSlash(dir))
		if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, missing := range []string{"cert.pem", "key.pem"} {
		files := map[string]string{"cert.pem": "cert.pem", "key.pem": "key.pem"}
		files[missing] = "none.pem"
		certstest.Write(t, filepath.Join(dir, "cert.pem"), certificate)
		certstest.Write(t, filepath.Join(dir, "key.pem"), key)
		_, err := Load(filepath.Join(dir, files["cert.pem"]), filepath.Join(dir, files["key.pem"]), t.Logf)
		if err == nil || !strings.Contains(err.Error(), "none.pem") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// TestExpired checks that an expired certificate is a warning.
func TestExpired(t *testing.T) {
	for when, want := range map[time.Duration]string{-time.Hour: "expired on", 48 * time.Hour: "is valid from",
		9 * time.Hour: ""} {
		dir, log := t.TempDir(), ""
		certificate, key := certstest.Make(t, "a", time.Now().Add(when))
		certstest.Write(t, filepath.Join(dir, "c"), certificate)
		certstest.Write(t, filepath.Join(dir, "k"), key)
		_, err := Load(filepath.Join(dir, "c"), filepath.Join(dir, "k"), func(format string, args ...any) {
			log += fmt.Sprintf(format, args...)
		})
		if err != nil || (log == "") != (want == "") || !strings.Contains(log, want) {
			t.Errorf("%v: log %q, %v; want %q", when, log, err, want)
		}
	}
}

// TestCertificate checks that the pair is what a connection gets.
func TestCertificate(t *testing.T) {
	certFile, keyFile := certstest.Files(t, t.TempDir())
	p, err := Load(certFile, keyFile, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Certificate(&tls.ClientHelloInfo{})
	if err != nil || c.Leaf.Subject.CommonName != "first" {
		t.Errorf("%v, %v", c, err)
	}
}
