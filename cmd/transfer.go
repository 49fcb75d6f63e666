package cmd

import (
	"fmt"

	"github.com/ingotml/ingot/registry"
	"github.com/spf13/cobra"
)

// transferFlags are those of the commands that talk to registries.
type transferFlags struct {
	plainHTTP, insecure bool
	caFile              string
	concurrency         int
}

// add gives a command that moves blobs all of them.
func (f *transferFlags) add(c *cobra.Command) {
	f.addConnection(c)
	c.Flags().IntVar(&f.concurrency, "concurrency", registry.DefaultConcurrency, "blobs that move at a time")
}

// addConnection gives a command that only asks a registry how to reach it.
func (f *transferFlags) addConnection(c *cobra.Command) {
	f.concurrency = registry.DefaultConcurrency
	c.Flags().BoolVar(&f.plainHTTP, "plain-http", false, "reach the registry without TLS, as is the rule for this machine's own")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "do not check the registry's certificate")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "trust the certificate authorities in this PEM `file` too")
}

// client makes a client of registries. events may be nil: what registries warn of is then told as it comes.
func (a *app) client(f *transferFlags, events func(registry.Event)) (*registry.Client, error) {
	switch {
	case f.concurrency < 1:
		return nil, usagef("--concurrency %d is none; give 1 or more", f.concurrency)
	case f.plainHTTP && f.insecure:
		return nil, usagef("--plain-http and --insecure exclude each other: without TLS there is no certificate")
	case f.plainHTTP && f.caFile != "":
		return nil, usagef("--plain-http and --ca-file exclude each other: without TLS there is no certificate")
	}
	if events == nil {
		events = func(e registry.Event) {
			if e.Kind == registry.Warned {
				a.note("%s", warning(e))
			}
		}
	}
	return registry.New(registry.Options{
		PlainHTTP:   f.plainHTTP,
		Insecure:    f.insecure,
		CAFile:      f.caFile,
		Concurrency: f.concurrency,
		UserAgent:   "ingot/" + Version,
		Events:      events,
	})
}

// warning is a registry's, in its own words.
func warning(e registry.Event) string {
	if e.Name == "" {
		return "warning: " + e.Err.Error()
	}
	return fmt.Sprintf("warning: %s: %v", e.Name, e.Err)
}
