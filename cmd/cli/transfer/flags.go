// Package transfer connects commands with registries and hubs: flags, credentials and the progress of transfers.
package transfer

import (
	"fmt"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are the flags of commands that use registries.
type Flags struct {
	plainHTTP, insecure bool
	Strict              bool
	caFile, certDir     string
	Credentials         CredentialFlags
	SettingFlags
}

// Add adds all flags, for commands that transfer blobs.
func (f *Flags) Add(c *cobra.Command) {
	f.AddConnection(c)
	f.addTransfer(c.Flags())
}

// AddUpload adds all flags, for commands that upload blobs.
func (f *Flags) AddUpload(c *cobra.Command) {
	f.Add(c)
	f.SettingFlags.addUpload(c.Flags())
}

// AddConnection adds only the flags of the connection, for commands that transfer no blobs.
func (f *Flags) AddConnection(c *cobra.Command) {
	f.AddServer(c)
	f.Credentials.add(c)
}

// AddServer adds only the flags about the server itself, for commands that have their own credentials.
func (f *Flags) AddServer(c *cobra.Command) {
	c.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "use no TLS (default for registries on this machine)")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "do not check the registry's certificate")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM `file` of additional certificate authorities")
	c.Flags().StringVar(&f.certDir, "cert-dir", "", "`folder` with *.crt, and your *.cert and *.key")
	f.AddWait(c.Flags())
	c.Flags().BoolVar(&f.Strict, "strict", false, "fail instead of leaving out an optional step with a warning")
}

// Connection returns the options of the flags for reaching registries.
func (f *Flags) Connection() (remote.Options, error) {
	for _, other := range []struct {
		flag  string
		given bool
	}{{"--insecure", f.insecure}, {"--ca-file", f.caFile != ""}, {"--cert-dir", f.certDir != ""}} {
		if f.plainHTTP && other.given {
			return remote.Options{}, cli.Usagef("--plain-http and %s cannot be combined: without TLS there is no certificate",
				other.flag)
		}
	}
	setting, err := f.Setting()
	if err != nil {
		return remote.Options{}, err
	}
	return remote.Options{
		Setting:   setting,
		PlainHTTP: f.plainHTTP,
		Insecure:  f.insecure,
		CAFile:    f.caFile,
		CertDir:   f.certDir,
		Strict:    f.Strict,
		UserAgent: "ingot/" + cli.Version,
	}, nil
}

// NewClient returns a registry client. If events is nil, warnings of registries are printed as notes.
func NewClient(a *cli.App, f *Flags, events func(registry.Event)) (*registry.Client, error) {
	connection, err := f.Connection()
	if err != nil {
		return nil, err
	}
	if connection.Keychain, err = keychain(a, &f.Credentials); err != nil {
		return nil, err
	}
	if events == nil {
		events = func(e registry.Event) {
			switch e.Kind {
			case registry.Warned:
				a.Note("%s", Warning(e))
			case registry.Paused:
				if e.Wait >= noticeWait {
					a.Note("%s (%s)", paused(e.Wait), e.Name)
				}
			}
		}
	}
	return registry.New(registry.Options{Connection: connection, Events: events})
}

// Warning formats a registry's warning.
func Warning(e registry.Event) string {
	if e.Name == "" {
		return "warning: " + e.Err.Error()
	}
	return fmt.Sprintf("warning: %s: %v", e.Name, e.Err)
}

// SettingFlags are flags that the configuration file has too, for one host or all. The flags are for all hosts.
type SettingFlags struct{ timeout, retries, concurrency, chunkSize string }

// AddWait adds the flags of commands that use a registry or a hub.
func (f *SettingFlags) AddWait(to *pflag.FlagSet) {
	to.StringVar(&f.timeout, "timeout", "", "`duration` that a connection may stand still (default grows)")
	to.StringVar(&f.retries, "retries", "",
		fmt.Sprintf("`number` of retries in a row without progress (default %d)", remote.DefaultAttempts-1))
}

// addTransfer adds the flag of commands that transfer blobs.
func (f *SettingFlags) addTransfer(to *pflag.FlagSet) {
	to.StringVar(&f.concurrency, "concurrency", "",
		fmt.Sprintf("`number` of parallel blob transfers (default %d)", registry.DefaultConcurrency))
}

// addUpload adds the flag of commands that upload blobs.
func (f *SettingFlags) addUpload(to *pflag.FlagSet) {
	to.StringVar(&f.chunkSize, "chunk-size", "",
		fmt.Sprintf("`size` of upload chunks of large tensors (default %dMiB)", registry.DefaultChunkSize>>20))
}

// given returns what the flags say.
func (f *SettingFlags) given() (own settings.Host, err error) {
	for _, flag := range []struct {
		name, value string
		set         func(string) error
	}{
		{"timeout", f.timeout, own.SetTimeout}, {"retries", f.retries, own.SetRetries},
		{"concurrency", f.concurrency, own.SetConcurrency}, {"chunk-size", f.chunkSize, own.SetChunkSize},
	} {
		if flag.value == "" {
			continue
		}
		if err := flag.set(flag.value); err != nil {
			return own, cli.Usagef("--%s: %v", flag.name, err)
		}
	}
	return own, nil
}

// Setting returns how each host is used: as the flags say, else as the configuration file does.
func (f *SettingFlags) Setting() (func(host string) settings.Host, error) {
	own, err := f.given()
	if err != nil {
		return nil, err
	}
	file, err := settings.Load()
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return func(host string) settings.Host { return own.Over(file.Host(host)) }, nil
}

// noticeWait is a wait that a user should know about.
const noticeWait = 5 * time.Second

// paused says how long nothing is sent to a registry that limits requests.
func paused(wait time.Duration) string {
	return fmt.Sprintf("waiting %s: the registry limits requests", wait.Round(time.Second))
}
