package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/spf13/cobra"
)

// CredentialFlags name credentials for one command, in files or on standard input.
type CredentialFlags struct {
	creds, srcCreds, destCreds string

	command *cobra.Command
	both    bool     // the command has registries in two arguments
	Names   []string // whose registry creds is for; nil: the first argument, or both
}

func (f *CredentialFlags) add(c *cobra.Command) {
	f.command = c
	c.Flags().StringVar(&f.creds, "creds", "", "`file` with USER:PASSWORD or docker's JSON; - is stdin")
}

// AddBoth adds the flags of commands with a registry in each of two arguments.
func (f *CredentialFlags) AddBoth(c *cobra.Command) {
	f.both = true
	c.Flags().StringVar(&f.srcCreds, "src-creds", "", "as --creds, for SRC only")
	c.Flags().StringVar(&f.destCreds, "dest-creds", "", "as --creds, for DST only")
}

// keychain returns the keychain of the flags, or nil if none is given.
func keychain(a *cli.App, f *CredentialFlags) (authn.Keychain, error) {
	if f.creds+f.srcCreds+f.destCreds == "" {
		return nil, nil
	}
	args := f.command.Flags().Args()
	src, dest := args[:min(1, len(args))], args[min(1, len(args)):]
	names := src
	switch {
	case f.Names != nil:
		names = f.Names
	case f.both:
		names = args
	}
	if (f.creds == "-" || f.srcCreds == "-") && f.destCreds == "-" || f.creds == "-" && f.srcCreds == "-" {
		return nil, cli.Usagef("standard input holds the credentials of one flag; name a file for the other")
	}
	k := credentials.Default
	// In the order in which they are searched: a repository that is read and written needs the credentials for writing.
	for _, flag := range []struct {
		name, value string
		keys        []string
	}{
		{"--dest-creds", f.destCreds, repositories(dest)},
		{"--src-creds", f.srcCreds, repositories(src)},
		{"--creds", f.creds, hosts(names)},
	} {
		if flag.value == "" {
			continue
		}
		content, place, err := readCredentials(f.command.Context(), a, flag.name, flag.value)
		if err != nil {
			return nil, err
		}
		if k, err = k.With(content, place, flag.keys); err != nil {
			return nil, cli.Usagef("%s: %v", flag.name, err)
		}
	}
	return k, nil
}

// repositories returns the repositories, host/path, of the names that have a registry.
func repositories(names []string) []string {
	var list []string
	for _, text := range names {
		if name, err := manifest.ParseName(text); err == nil && !name.IsLocal() {
			list = append(list, name.Host+"/"+name.Path)
		}
	}
	return list
}

// hosts returns the registries of names, each once.
func hosts(names []string) []string {
	list := repositories(names)
	for i, repository := range list {
		list[i], _, _ = strings.Cut(repository, "/")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// readCredentials reads the file of a flag once, and returns what errors call it.
func readCredentials(ctx context.Context, a *cli.App, flag, file string) (content []byte, place string, err error) {
	place = file
	if file == "-" {
		place = "standard input"
	}
	content, ok := a.CredentialFiles[file]
	if !ok {
		if content, err = readCredentialFile(ctx, a, flag, file); err == nil {
			if a.CredentialFiles == nil {
				a.CredentialFiles = map[string][]byte{}
			}
			a.CredentialFiles[file] = content
		}
	}
	return content, place, err
}

func readCredentialFile(ctx context.Context, a *cli.App, flag, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(a.Stdin(ctx), credentials.MaxFile+1))
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(file, ":") {
		// Not quoted: it is a password.
		return nil, cli.Usagef("%s takes a file, or - for standard input, with USER:PASSWORD: other users can see a "+
			"password on the command line", flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		cli.NoteReadable(a, file, info.Mode())
	}
	return io.ReadAll(io.LimitReader(f, credentials.MaxFile+1))
}
