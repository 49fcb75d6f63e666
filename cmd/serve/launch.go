package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/server/ollama"
	"github.com/spf13/cobra"
)

// launchRun names the only choice that is not a client: this program's own `run`.
const launchRun = "run"

func launchCommand(a *cli.App) *cobra.Command {
	var o launchOptions
	c := &cobra.Command{
		Use:   "launch [CLIENT] [-- ARGS]",
		Short: "Start a coding client with the server's models",
		Long: `Start a coding client that uses this server: claude (Claude Code), codex, openclaw or opencode.
Arguments after -- are passed to the client. "run" starts a conversation on the terminal instead.

The client must be installed (launch offers to install openclaw with npm) and the server must be
running: "ingot serve". Without --model, launch asks for the model; the default is the client's last one.
If the server lacks the model, launch offers to pull it, or to import it if its name is
hf.co/ORG/REPO[@REVISION].

Claude Code, Codex and OpenCode are configured by environment and arguments; no file is written. In
OpenClaw's configuration, launch adds this server as a provider and keeps everything else. It backs up
the file first.`,
		Example: `  ingot launch claude
  ingot launch claude --model qwen3:int4 --yes \
    -- -p "What does this program do?"
  eval "$(ingot launch opencode --model qwen3 --config-only)"`,
		Args: func(c *cobra.Command, args []string) error {
			given, _ := splitDash(c, args)
			return cli.Between(0, 1)(c, given)
		},
		RunE: func(c *cobra.Command, args []string) error { return runLaunch(a, c, args, o) },

		ValidArgsFunction: clientNames,
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`name` of the model (default: ask)")
	f.BoolVar(&o.yes, "yes", false, "install and pull without asking; requires --model")
	f.BoolVar(&o.configOnly, "config-only", false, "configure and print the shell commands; start nothing")
	o.server.Add(c)
	return c
}

type launchOptions struct {
	model           string
	server          servers.Flags
	yes, configOnly bool
}

// splitDash splits the arguments at --.
func splitDash(c *cobra.Command, args []string) (before, after []string) {
	if n := c.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// launcher is one invocation of launch.
type launcher struct {
	*cli.App
	o         launchOptions
	args      []string // passed on to the client
	requested string   // --model as given; it may name a hub
	saved     string   // the file that records the last choices; "" if it has no place
}

func runLaunch(a *cli.App, c *cobra.Command, args []string, o launchOptions) error {
	given, rest := splitDash(c, args)
	l := &launcher{App: a, o: o, args: rest, saved: cli.StatePath("launch.json")}
	switch {
	case o.model != "":
		name, err := models.ParseName(o.model)
		if err != nil {
			return err
		}
		l.requested, l.o.model = o.model, name.String()
	case o.yes:
		return cli.Usagef("--yes requires --model NAME, since it asks nothing")
	}
	target := launchRun
	switch {
	case len(given) == 1:
		target = given[0]
	case a.OnTerminal() && !o.yes:
		var err error
		if target, err = l.chooseClient(c.Context()); err != nil {
			return err
		}
	}
	if target == launchRun {
		return l.run(c.Context())
	}
	client, known := launch.ByName(target)
	if !known {
		return cli.Usagef("unknown client %q; use one of %s", target, strings.Join(launchNames(), ", "))
	}
	if l.o.model == "" && !a.OnTerminal() {
		return cli.Usagef("not a terminal: pass --model NAME")
	}
	return l.client(c.Context(), client)
}

// launchNames lists everything that can be launched.
func launchNames() []string {
	var names []string
	for _, c := range launch.Clients() {
		names = append(names, c.Name)
	}
	return append(names, launchRun)
}

// clientNames completes the only argument of launch.
func clientNames(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return launchNames(), cobra.ShellCompDirectiveNoFileComp
}

// client launches a coding client.
func (l *launcher) client(ctx context.Context, client launch.Client) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	path, err := l.find(ctx, client, home)
	if err != nil {
		return err
	}
	s, err := servers.New(l.App, l.o.server)
	if err != nil {
		return err
	}
	var version ollama.VersionJSON
	if err := l.ask(ctx, s, http.MethodGet, "/api/version", nil, &version); err != nil {
		return err
	}
	if l.o.model == "" {
		if l.o.model, err = l.chooseModel(ctx, s, client.Name); err != nil {
			return err
		}
	}
	model, err := l.ready(ctx, s, version)
	if err != nil {
		return err
	}
	setup := launch.Setup{URL: s.At.URL(), Key: s.Key, Model: model, Args: l.args, Env: os.Environ(), Home: home,
		Note: l.Note}
	changed, err := client.Configure(setup)
	for _, file := range changed {
		l.Note("changed %s", file)
	}
	if err != nil {
		return err
	}
	if err := l.remember(client.Name); err != nil {
		return err
	}
	start := client.Start(path, setup)
	if l.o.configOnly {
		return l.printStart(start)
	}
	return start.Run()
}

// remember saves the launched model as the next default.
func (l *launcher) remember(client string) error {
	if l.saved == "" {
		return nil
	}
	return launch.Save(l.saved, client, l.o.model)
}

// find returns the path of the client's program. It installs the client first if that is possible and the user agrees.
func (l *launcher) find(ctx context.Context, client launch.Client, home string) (string, error) {
	path, absent := client.Find(home)
	if !errors.Is(absent, launch.ErrAbsent) {
		return path, absent
	}
	command, err := client.Installer()
	switch {
	case err != nil:
		return "", err
	case command == nil:
		return "", absent
	}
	line := strings.Join(command, " ")
	if !l.o.yes {
		if !l.OnTerminal() {
			return "", fmt.Errorf("%w; install it with `%s`, or pass --yes", absent, line)
		}
		wanted, err := l.Confirm(ctx, fmt.Sprintf("%s is not installed; install it with `%s`?", client.Title, line))
		if err != nil {
			return "", err
		}
		if !wanted {
			return "", absent
		}
	}
	l.Note("running %s", line)
	install := child.Command(ctx, nil, command[0], command[1:]...)
	install.Stdout, install.Stderr = l.Err, l.Err
	if err := install.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	if path, err = client.Find(home); err != nil {
		return "", fmt.Errorf("%s is installed, but not on the PATH; try a new shell", client.Title)
	}
	return path, nil
}

// launchTimeout is the timeout of requests that need no model.
const launchTimeout = 20 * time.Second

func (l *launcher) ask(ctx context.Context, s servers.Client, method, path string, body, to any) error {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	return s.Get(ctx, method, path, body, to)
}

// run starts a conversation with a model, or prints one response if there is no terminal.
func (l *launcher) run(ctx context.Context) error {
	if l.o.configOnly {
		return cli.Usagef("%s has no configuration", launchRun)
	}
	remember := true
	if l.o.model == "" && l.OnTerminal() {
		var err error
		if l.o.model, err = l.chooseStored(ctx); err != nil {
			return err
		}
	} else if l.o.model == "" {
		saved, err := launch.ReadSaved(l.saved)
		if err != nil {
			return err
		}
		if saved.Last == "" {
			return cli.Usagef("pass --model NAME: no model was launched before")
		}
		l.o.model, remember = saved.Last, false
		l.Note("running %s, the last launched model", saved.Last)
	}
	if err := l.stored(ctx); err != nil {
		return err
	}
	if remember {
		if err := l.remember(""); err != nil {
			return err
		}
	}
	args := []string{"run", l.o.model}
	if l.Quiet {
		args = append(args, "--quiet")
	}
	if file := l.o.server.Key.File; file != "" {
		args = append(args, "--api-key-file", file)
	}
	return l.Execute(ctx, append(args, l.args...))
}
