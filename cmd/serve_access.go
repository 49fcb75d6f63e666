package cmd

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/certs"
	"github.com/ingotml/ingot/server/guard"
	"github.com/ingotml/ingot/server/keys"
	"github.com/spf13/cobra"
)

// accessFlags say where a server listens and who may send it requests.
type accessFlags struct {
	host, apiKey    string
	keyFile         keyFlag
	insecure        bool
	hosts, origins  []string
	tlsCert, tlsKey string
}

func (o *accessFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.host, "host", "", "listen `address` (default $"+address.Env+" or 127.0.0.1:11434)")
	f.StringVar(&o.apiKey, "api-key", "", "required API key, visible to other users of the machine")
	f.StringVar(&o.keyFile.file, "api-key-file", "", "`file` with the API keys, one a line (default $"+envAPIKey+")")
	f.StringVar(&o.tlsCert, "tls-cert", "", "`file` with the TLS certificate, in PEM form")
	f.StringVar(&o.tlsKey, "tls-key", "", "`file` with the certificate's key, in PEM form")
	f.BoolVar(&o.insecure, "insecure-listen", false, "let other machines send requests without a key")
	f.StringArrayVar(&o.hosts, "allow-host", nil, "additional Host header, a `pattern` such as *.lan")
	f.StringArrayVar(&o.origins, "allow-origin", nil, "additional web origin, a `pattern` such as https://*.lan")
}

// set returns the address to listen on, and sets the server's options of access.
func (o *accessFlags) set(a *app, s *server.Options) (at address.Address, err error) {
	at, warning := address.FromEnv(o.host)
	hasTLS := o.tlsCert != "" && o.tlsKey != ""
	switch {
	case warning != "":
		return at, usagef("address %s", warning)
	case (o.tlsCert != "") != (o.tlsKey != ""):
		return at, usagef("--tls-cert and --tls-key belong together: pass both, or none")
	case at.Path != "":
		return at, usagef("address %s: the server supports no path", at.URL())
	case at.Scheme == "https" && !hasTLS:
		return at, usagef("address %s: https needs a certificate: pass --tls-cert FILE and --tls-key FILE", at.URL())
	}
	s.Host = at.Host
	if s.Hosts, err = guard.ParseHosts(o.hosts); err != nil {
		return at, usagef("--allow-host %v", err)
	}
	if s.Origins, err = guard.ParseOrigins(o.origins); err != nil {
		return at, usagef("--allow-origin %v", err)
	}
	if s.Keys, err = o.keys(a); err != nil {
		return at, err
	}
	if !at.Loopback() && s.Keys == nil && !o.insecure {
		return at, usagef("other machines can reach %s: pass --api-key-file FILE, or --insecure-listen to require no key",
			at.Listen())
	}
	if hasTLS {
		at.Scheme = "https"
		pair, err := certs.Load(o.tlsCert, o.tlsKey, a.note)
		if err != nil {
			return at, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		noteMode(a, o.tlsKey)
		s.Certificate = pair.Certificate
	}
	return at, nil
}

// keys returns the required keys, or nil for none.
func (o *accessFlags) keys(a *app) (*keys.Keys, error) {
	switch {
	case o.apiKey != "" && o.keyFile.file != "":
		return nil, usagef("--api-key and --api-key-file cannot be combined")
	case o.keyFile.file != "":
		list, err := keys.Open(o.keyFile.file, a.note)
		if err != nil {
			return nil, fmt.Errorf("--api-key-file: %w", err)
		}
		noteMode(a, o.keyFile.file)
		return list, nil
	case o.apiKey != "":
		return keys.One(o.apiKey), nil
	}
	if key := os.Getenv(envAPIKey); key != "" {
		return keys.One(key), nil
	}
	return nil, nil
}

// noteMode prints a note if other users may read a file with a secret.
func noteMode(a *app, file string) {
	if info, err := os.Stat(file); err == nil {
		noteReadable(a, file, info.Mode())
	}
}

func noteReadable(a *app, file string, mode fs.FileMode) {
	if mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.note("note: other users may read %s (mode %04o); restrict it with `chmod 600`", file, mode.Perm())
	}
}
