package cmd

import (
	"fmt"

	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/spf13/cobra"
)

// transferFlags are the flags of commands that use registries.
type transferFlags struct {
	plainHTTP, insecure bool
	strict              bool
	caFile, certDir     string
	concurrency         int
	credentials         credentialFlags
}

// add adds all flags, for commands that transfer blobs.
func (f *transferFlags) add(c *cobra.Command) {
	f.addConnection(c)
	c.Flags().IntVar(&f.concurrency, "concurrency", registry.DefaultConcurrency, "number of parallel blob transfers")
}

// addConnection adds only the flags of the connection, for commands that transfer no blobs.
func (f *transferFlags) addConnection(c *cobra.Command) {
	f.addServer(c)
	f.credentials.add(c)
}

// addServer adds only the flags about the server itself, for commands that have their own credentials.
func (f *transferFlags) addServer(c *cobra.Command) {
	f.concurrency = registry.DefaultConcurrency
	c.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "use no TLS (default for registries on this machine)")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "do not check the registry's certificate")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM `file` of additional certificate authorities")
	c.Flags().StringVar(&f.certDir, "cert-dir", "", "`folder` with *.crt, and your *.cert and *.key")
	c.Flags().BoolVar(&f.strict, "strict", false, "fail instead of leaving out an optional step with a warning")
}

// connection returns the options of the flags for reaching registries.
func (f *transferFlags) connection() (remote.Options, error) {
	switch {
	case f.concurrency < 1:
		return remote.Options{}, usagef("--concurrency %d must be at least 1", f.concurrency)
	case f.plainHTTP && f.insecure:
		return remote.Options{}, usagef("--plain-http and --insecure cannot be combined: without TLS there is no certificate")
	case f.plainHTTP && f.caFile != "":
		return remote.Options{}, usagef("--plain-http and --ca-file cannot be combined: without TLS there is no certificate")
	case f.plainHTTP && f.certDir != "":
		return remote.Options{}, usagef("--plain-http and --cert-dir cannot be combined: without TLS there is no certificate")
	}
	return remote.Options{
		PlainHTTP: f.plainHTTP,
		Insecure:  f.insecure,
		CAFile:    f.caFile,
		CertDir:   f.certDir,
		Strict:    f.strict,
		UserAgent: "ingot/" + Version,
	}, nil
}

// client returns a registry client. If events is nil, warnings of registries are printed as notes.
func (a *app) client(f *transferFlags, events func(registry.Event)) (*registry.Client, error) {
	connection, err := f.connection()
	if err != nil {
		return nil, err
	}
	if connection.Keychain, err = a.keychain(&f.credentials); err != nil {
		return nil, err
	}
	if events == nil {
		events = func(e registry.Event) {
			if e.Kind == registry.Warned {
				a.note("%s", warning(e))
			}
		}
	}
	return registry.New(registry.Options{Connection: connection, Concurrency: f.concurrency, Events: events})
}

// warning formats a registry's warning.
func warning(e registry.Event) string {
	if e.Name == "" {
		return "warning: " + e.Err.Error()
	}
	return fmt.Sprintf("warning: %s: %v", e.Name, e.Err)
}
