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
	credentials         credentialFlags
	settingFlags
}

// add adds all flags, for commands that transfer blobs.
func (f *transferFlags) add(c *cobra.Command) {
	f.addConnection(c)
	f.addTransfer(c.Flags())
}

// addUpload adds all flags, for commands that upload blobs.
func (f *transferFlags) addUpload(c *cobra.Command) {
	f.add(c)
	f.settingFlags.addUpload(c.Flags())
}

// addConnection adds only the flags of the connection, for commands that transfer no blobs.
func (f *transferFlags) addConnection(c *cobra.Command) {
	f.addServer(c)
	f.credentials.add(c)
}

// addServer adds only the flags about the server itself, for commands that have their own credentials.
func (f *transferFlags) addServer(c *cobra.Command) {
	c.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "use no TLS (default for registries on this machine)")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "do not check the registry's certificate")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM `file` of additional certificate authorities")
	c.Flags().StringVar(&f.certDir, "cert-dir", "", "`folder` with *.crt, and your *.cert and *.key")
	f.addWait(c.Flags())
	c.Flags().BoolVar(&f.strict, "strict", false, "fail instead of leaving out an optional step with a warning")
}

// connection returns the options of the flags for reaching registries.
func (f *transferFlags) connection() (remote.Options, error) {
	switch {
	case f.plainHTTP && f.insecure:
		return remote.Options{}, usagef("--plain-http and --insecure cannot be combined: without TLS there is no certificate")
	case f.plainHTTP && f.caFile != "":
		return remote.Options{}, usagef("--plain-http and --ca-file cannot be combined: without TLS there is no certificate")
	case f.plainHTTP && f.certDir != "":
		return remote.Options{}, usagef("--plain-http and --cert-dir cannot be combined: without TLS there is no certificate")
	}
	setting, err := f.setting()
	if err != nil {
		return remote.Options{}, err
	}
	return remote.Options{
		Setting:   setting,
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
			switch e.Kind {
			case registry.Warned:
				a.note("%s", warning(e))
			case registry.Paused:
				if e.Wait >= noticeWait {
					a.note("%s (%s)", paused(e.Wait), e.Name)
				}
			}
		}
	}
	return registry.New(registry.Options{Connection: connection, Events: events})
}

// warning formats a registry's warning.
func warning(e registry.Event) string {
	if e.Name == "" {
		return "warning: " + e.Err.Error()
	}
	return fmt.Sprintf("warning: %s: %v", e.Name, e.Err)
}
