package credentials

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ingotml/ingot/internal/limits/place"
)

// Certificates are those that the user has for one registry, in a folder as docker and podman lay it out
// (https://github.com/containers/image/blob/main/docs/containers-certs.d.5.md). The authorities in *.crt are trusted
// for the registry and for what it leads to. The user's own in *.cert, with their keys in *.key, are shown to it alone.
type Certificates struct {
	authorities [][]byte // PEM
	own         []tls.Certificate
}

// HasOwn reports whether any of the certificates is the user's own.
func (c *Certificates) HasOwn() bool { return len(c.own) > 0 }

// Config returns a TLS configuration with the certificates. own says whether the connection is to the registry itself.
func (c *Certificates) Config(base *tls.Config, own bool) *tls.Config {
	if base == nil {
		base = &tls.Config{}
	}
	base = base.Clone()
	if len(c.authorities) > 0 {
		pool := base.RootCAs
		if pool == nil {
			var err error
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		pool = pool.Clone()
		for _, pem := range c.authorities {
			pool.AppendCertsFromPEM(pem)
		}
		base.RootCAs = pool
	}
	if own {
		base.Certificates = c.own
	}
	return base
}

// CertificatesOf returns the certificates for a registry, which has these names, or nil. They are in given, if not
// empty, else in the first folder that docker or podman would take. What is usable is returned also beside an error.
func CertificatesOf(given string, names ...string) (*Certificates, error) {
	if given == "" {
		for _, base := range certFolders() {
			if dir := folderOf(base, names); dir != "" {
				return readCertificates(dir)
			}
		}
		return nil, nil
	}
	if dir := folderOf(given, names); dir != "" {
		return readCertificates(dir)
	}
	found, err := readCertificates(given)
	if err == nil && len(found.authorities)+len(found.own) == 0 && !hasFolders(given) {
		err = fmt.Errorf("%s holds no *.crt, no *.cert with its *.key, and no folder of a registry", given)
	}
	return found, err
}

// certFolders lists the folders that have one for each registry: the user's, then the system's.
func certFolders() []string {
	var list []string
	home, _ := os.UserHomeDir()
	if dir := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "containers", "certs.d"), filepath.Join(dir, "docker", "certs.d"))
	}
	if home != "" {
		list = append(list, filepath.Join(home, ".docker", "certs.d")) // Docker Desktop's
	}
	if data := os.Getenv("ProgramData"); runtime.GOOS == "windows" && data != "" {
		return append(list, filepath.Join(data, "docker", "certs.d"))
	}
	return append(list, "/etc/containers/certs.d", "/etc/docker/certs.d")
}

// folderOf returns the folder of a registry within another, or an empty string.
func folderOf(base string, names []string) string {
	for _, name := range names {
		name = strings.ToLower(name)
		if runtime.GOOS == "windows" {
			name = strings.ReplaceAll(name, ":", "") // as docker does
		}
		if strings.ContainsAny(name, `/\`) || strings.Trim(name, ".") == "" {
			continue
		}
		dir := filepath.Join(base, name)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

func hasFolders(dir string) bool {
	list, _ := os.ReadDir(dir)
	for _, entry := range list {
		if info, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// readCertificates reads a folder. It returns what is usable, also beside an error, which is of the first that is not.
func readCertificates(dir string) (*Certificates, error) {
	found := &Certificates{}
	list, err := os.ReadDir(dir)
	if err != nil {
		return found, fmt.Errorf("read certificates: %w", err)
	}
	for _, entry := range list {
		file := filepath.Join(dir, entry.Name())
		var problem error
		switch base, extension := strings.TrimSuffix(file, filepath.Ext(file)), filepath.Ext(file); extension {
		case ".crt":
			problem = found.addAuthorities(file)
		case ".cert":
			problem = found.addOwn(file, base+".key")
		case ".key":
			if _, err := os.Stat(base + ".cert"); errors.Is(err, fs.ErrNotExist) {
				problem = fmt.Errorf("%s has no certificate: %s.cert is not there", file, base)
			}
		}
		err = cmp.Or(err, problem)
	}
	return found, err
}

func (c *Certificates) addAuthorities(file string) error {
	text, err := place.ReadFile(file, MaxFile)
	pem, err := authorities(file, text, err)
	if err == nil {
		c.authorities = append(c.authorities, pem)
	}
	return err
}

// ReadAuthorities reads a PEM file of certificate authorities, which may be a pipe.
func ReadAuthorities(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	return authorities(file, text, err)
}

func authorities(file string, pem []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate authorities: %s holds no PEM certificate", file)
	}
	return pem, nil
}

func (c *Certificates) addOwn(file, key string) error {
	if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no key: %s is not there; a certificate authority is named *.crt", file, key)
	}
	text, err := place.ReadFile(file, MaxFile)
	var pair tls.Certificate
	if err == nil {
		var secret []byte
		if secret, err = place.ReadFile(key, MaxFile); err == nil {
			pair, err = tls.X509KeyPair(text, secret)
		}
	}
	if err != nil {
		return fmt.Errorf("client certificate %s with %s: %w", file, key, err)
	}
	c.own = append(c.own, pair)
	return nil
}
