// Package certs has a server's TLS certificate, read from PEM files and again when they change.
//
// Contract:
//   - A certificate is used only with the key that belongs to it. While one of the files is newer than the other, the
//     former pair stays in use.
//   - A certificate that has expired is used and logged: clients decide.
//   - A Pair is safe for concurrent use.
package certs

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/reload"
)

// Pair is a certificate and its key.
type Pair struct {
	value *reload.Value[*tls.Certificate]
}

// Load reads the files. The certificate's may have the chain after it. log gets what happens to them later.
func Load(certFile, keyFile string, log func(format string, args ...any)) (*Pair, error) {
	read := func() (*tls.Certificate, error) { return readPair(certFile, keyFile, log) }
	v, err := reload.Load(read, log, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &Pair{v}, nil
}

// Certificate returns the certificate for a connection, as tls.Config.GetCertificate does.
func (p *Pair) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.value.Get(), nil }

func readPair(certFile, keyFile string, log func(format string, args ...any)) (*tls.Certificate, error) {
	certificate, err := readFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return nil, err
	}
	switch {
	case !has(certificate, "CERTIFICATE") && has(certificate, "KEY"):
		return nil, fmt.Errorf("%s has a key instead of a certificate", certFile)
	case !has(certificate, "CERTIFICATE"):
		return nil, fmt.Errorf("%s has no certificate in PEM form (BEGIN CERTIFICATE)", certFile)
	case has(key, "ENCRYPTED") || bytes.Contains(key, []byte("Proc-Type: 4,ENCRYPTED")):
		return nil, fmt.Errorf("%s: the key is encrypted; store it without a password, such as with `openssl pkey`", keyFile)
	case !has(key, "KEY") && has(key, "CERTIFICATE"):
		return nil, fmt.Errorf("%s has a certificate instead of a key", keyFile)
	case !has(key, "KEY"):
		return nil, fmt.Errorf("%s has no key in PEM form (BEGIN PRIVATE KEY)", keyFile)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "tls: ")
		if strings.Contains(text, "does not match") {
			text = "the key does not belong to the certificate"
		}
		return nil, fmt.Errorf("%s and %s: %s", certFile, keyFile, text)
	}
	switch now := time.Now(); {
	case now.After(pair.Leaf.NotAfter):
		log("warning: the certificate in %s expired on %s", certFile, pair.Leaf.NotAfter.Format(time.DateOnly))
	case now.Before(pair.Leaf.NotBefore):
		log("warning: the certificate in %s is valid from %s on", certFile, pair.Leaf.NotBefore.Format(time.DateOnly))
	}
	return &pair, nil
}

// has reports whether a PEM text has a block whose type contains a word.
func has(text []byte, word string) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.Contains(block.Type, word) {
			return true
		}
	}
	return false
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limits.CertificateFile+1))
	if err == nil && len(b) > limits.CertificateFile {
		err = fmt.Errorf("%s has more than %d bytes: it is no certificate or key", path, limits.CertificateFile)
	}
	return b, err
}
