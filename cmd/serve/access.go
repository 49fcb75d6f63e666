package serve

import (
	"fmt"
	"os"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
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
	keyFile         servers.KeyFlag
	insecure        bool
	hosts, origins  []string
	tlsCert, tlsKey string
}

func (o *accessFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.host, "host", "", "listen `address` (default $"+address.Env+" or 127.0.0.1:11434)")
	f.StringVar(&o.apiKey, "api-key", "", "required API key, visible to other users of the machine")
	f.StringVar(&o.keyFile.File, "api-key-file", "",
		"`file` with the API keys, one a line (default $"+servers.EnvAPIKey+")")
	f.StringVar(&o.tlsCert, "tls-cert", "", "`file` with the TLS certificate, in PEM form")
	f.StringVar(&o.tlsKey, "tls-key", "", "`file` with the certificate's key, in PEM form")
	f.BoolVar(&o.insecure, "insecure-listen", false, "let other machines send requests without a key")
	f.StringArrayVar(&o.hosts, "allow-host", nil, "additional Host header, a `pattern` such as *.lan")
	f.StringArrayVar(&o.origins, "allow-origin", nil, "additional web origin, a `pattern` such as https://*.lan")
}

// set returns the address to listen on, and sets the server's options of access.
func (o *accessFlags) set(a *cli.App, s *server.Options) (at address.Address, err error) {
	at, warning := address.FromEnv(o.host)
	hasTLS := o.tlsCert != "" && o.tlsKey != ""
	switch {
	case warning != "":
		return at, cli.Usagef("address %s", warning)
	case (o.tlsCert != "") != (o.tlsKey != ""):
		return at, cli.Usagef("--tls-cert and --tls-key belong together: pass both, or none")
	case at.Path != "":
		return at, cli.Usagef("address %s: the server supports no path", at.URL())
	case at.Scheme == "https" && !hasTLS:
		return at, cli.Usagef("address %s: https needs a certificate: pass --tls-cert FILE and --tls-key FILE", at.URL())
	}
	s.Host = at.Host
	if s.Hosts, err = guard.ParseHosts(o.hosts); err != nil {
		return at, cli.Usagef("--allow-host %v", err)
	}
	if s.Origins, err = guard.ParseOrigins(o.origins); err != nil {
		return at, cli.Usagef("--allow-origin %v", err)
	}
	if s.Keys, err = o.keys(a); err != nil {
		return at, err
	}
	if !at.Loopback() && s.Keys == nil && !o.insecure {
		return at, cli.Usagef("other machines can reach %s: pass --api-key-file FILE, or --insecure-listen to require no key",
			at.Listen())
	}
	if hasTLS {
		at.Scheme = "https"
		pair, err := certs.Load(o.tlsCert, o.tlsKey, a.Note)
		if err != nil {
			return at, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		cli.NoteMode(a, o.tlsKey)
		s.Certificate = pair.Certificate
	}
	return at, nil
}

// keys returns the required keys, or nil for none.
func (o *accessFlags) keys(a *cli.App) (*keys.Keys, error) {
	switch {
	case o.apiKey != "" && o.keyFile.File != "":
		return nil, cli.Usagef("--api-key and --api-key-file cannot be combined")
	case o.keyFile.File != "":
		list, err := keys.Open(o.keyFile.File, a.Note)
		if err != nil {
			return nil, fmt.Errorf("--api-key-file: %w", err)
		}
		cli.NoteMode(a, o.keyFile.File)
		return list, nil
	case o.apiKey != "":
		return keys.One(o.apiKey), nil
	}
	if key := os.Getenv(servers.EnvAPIKey); key != "" {
		return keys.One(key), nil
	}
	return nil, nil
}
