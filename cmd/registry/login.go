package registry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func loginCommand(a *cli.App) *cobra.Command {
	var flags transfer.Flags
	var user string
	var fromStdin bool
	c := &cobra.Command{
		Use:   "login HOST",
		Short: "Store credentials for a registry",
		Long: `Check a user name and password with a registry, and store them where docker does: in the credential
helper that docker's config.json names (in $DOCKER_CONFIG, or else ~/.docker), or else in that file. If
$REGISTRY_AUTH_FILE is set, and $DOCKER_CONFIG is not, they are stored in that file, as podman does.

login asks for the password on a terminal, or reads it from standard input with --password-stdin. There
is no flag for it, since other users can see command lines. Some registries require a token as password.
Nothing is stored that the registry does not accept.`,
		Example: `  ingot login ghcr.io -u octocat
  ingot login registry.example.com -u ci --password-stdin < token`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			host, err := registryHost(args[0])
			if err != nil {
				return err
			}
			connection, err := flags.Connection()
			if err != nil {
				return err
			}
			connection.Warn = func(host string, err error) {
				a.Note("%s", transfer.Warning(registry.Event{Kind: registry.Warned, Name: host, Err: err}))
			}
			client, err := remote.New(connection)
			if err != nil {
				return err
			}
			user, password, err := credentials(c.Context(), a, host, user, fromStdin)
			if err != nil {
				return err
			}
			result, err := client.Login(c.Context(), host, user, password)
			if err != nil {
				return err
			}
			if result.Stored == "" {
				a.Note("note: %s requires no credentials, so none are stored; if a command needs some there, "+
					"give them with --creds FILE", host)
				return nil
			}
			a.Note("credentials for %s are stored in %s", host, result.Stored)
			return nil
		},
	}
	flags.AddServer(c)
	c.Flags().StringVarP(&user, "username", "u", "", "user `name` (default: ask)")
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	return c
}

// registryHost checks that an argument is a registry's host, and not a model name or a URL with a path.
func registryHost(arg string) (string, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(arg, "https://"), "/")
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return "", cli.Usagef("%q is not a registry host; use host[:port], such as ghcr.io", arg)
	}
	return host, nil
}

// credentials asks for the user name and password that the command line does not give. Without a terminal it fails
// instead of asking.
func credentials(ctx context.Context, a *cli.App, host, user string, fromStdin bool) (string, string, error) {
	if fromStdin {
		if user == "" {
			return "", "", cli.Usagef("--password-stdin needs --username")
		}
		password, err := readPassword(a.Stdin(ctx))
		return user, password, err
	}
	f, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", "", cli.Usagef("not a terminal: pass the password on standard input with --password-stdin")
	}
	if user == "" {
		fmt.Fprintf(a.Err, "user name for %s: ", terminal.Line(host))
		line, err := bufio.NewReader(a.Stdin(ctx)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", "", fmt.Errorf("ask for the user name: %w", err)
		}
		if user = strings.TrimSpace(line); user == "" {
			return "", "", cli.Usagef("the user name is empty")
		}
	}
	b, err := a.AskSecret(ctx, f, "password or token of "+user)
	if err != nil {
		return "", "", fmt.Errorf("ask for the password: %w", err)
	}
	if len(b) == 0 {
		return "", "", cli.Usagef("the password is empty")
	}
	return user, string(b), nil
}

// maxPassword bounds the password in bytes. Tokens have a few thousand.
const maxPassword = 64 << 10

func readPassword(from io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(from, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case password == "":
		return "", cli.Usagef("standard input contains no password")
	case len(b) > maxPassword || strings.ContainsAny(password, "\r\n\x00"):
		return "", cli.Usagef("standard input must contain only a password of one line")
	}
	return password, nil
}

func logoutCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "logout HOST[/PATH]",
		Short: "Remove credentials for a registry",
		Long: `Remove the credentials for a registry, or those that are for a namespace of it only, from the files of
docker and podman and from the credential helpers that these name. Docker and podman share them, so they are
logged out too.`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			host, _, _ := strings.Cut(strings.TrimPrefix(args[0], "https://"), "/")
			if _, err := registryHost(host); err != nil {
				return err
			}
			host = strings.TrimSuffix(strings.TrimPrefix(args[0], "https://"), "/")
			found, err := remote.Logout(c.Context(), host)
			switch {
			case err != nil:
				return err
			case found:
				a.Note("removed the credentials for %s", host)
			default:
				a.Note("there are no credentials for %s", host)
			}
			return nil
		},
	}
}
