package cmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
	"github.com/spf13/cobra"
)

// launchRun names the only choice that is not a client: this program's own `run`.
const launchRun = "run"

func (a *app) launchCmd() *cobra.Command {
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
			return between(0, 1)(c, given)
		},
		RunE: func(c *cobra.Command, args []string) error { return a.launch(c, args, o) },

		ValidArgsFunction: clientNames,
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`name` of the model (default: ask)")
	f.BoolVar(&o.yes, "yes", false, "install and pull without asking; requires --model")
	f.BoolVar(&o.configOnly, "config-only", false, "configure and print the shell commands; start nothing")
	o.server.add(c)
	return c
}

type launchOptions struct {
	model           string
	server          serverFlags
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
	*app
	o         launchOptions
	args      []string // passed on to the client
	requested string   // --model as given; it may name a hub
	saved     string   // the file that records the last choices; "" if it has no place
}

func (a *app) launch(c *cobra.Command, args []string, o launchOptions) error {
	given, rest := splitDash(c, args)
	l := &launcher{app: a, o: o, args: rest, saved: statePath("launch.json")}
	switch {
	case o.model != "":
		name, err := parseStored(o.model)
		if err != nil {
			return err
		}
		l.requested, l.o.model = o.model, name.String()
	case o.yes:
		return usagef("--yes requires --model NAME, since it asks nothing")
	}
	target := launchRun
	switch {
	case len(given) == 1:
		target = given[0]
	case a.onTerminal() && !o.yes:
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
		return usagef("unknown client %q; use one of %s", target, strings.Join(launchNames(), ", "))
	}
	if l.o.model == "" && !a.onTerminal() {
		return usagef("not a terminal: pass --model NAME")
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
	s, err := l.newClient(l.o.server)
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
	setup := launch.Setup{URL: s.at.URL(), Key: s.key, Model: model, Args: l.args, Env: os.Environ(), Home: home,
		Note: l.note}
	changed, err := client.Configure(setup)
	for _, file := range changed {
		l.note("changed %s", file)
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
		if !l.onTerminal() {
			return "", fmt.Errorf("%w; install it with `%s`, or pass --yes", absent, line)
		}
		wanted, err := l.confirm(ctx, fmt.Sprintf("%s is not installed; install it with `%s`?", client.Title, line))
		if err != nil {
			return "", err
		}
		if !wanted {
			return "", absent
		}
	}
	l.note("running %s", line)
	install := child.Command(ctx, nil, command[0], command[1:]...)
	install.Stdout, install.Stderr = l.err, l.err
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

func (l *launcher) ask(ctx context.Context, s serverClient, method, path string, body, to any) error {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	return s.get(ctx, method, path, body, to)
}

// modelShown is the part of the server's /api/show response that launch uses.
type modelShown struct {
	Capabilities []string       `json:"capabilities"`
	Info         map[string]any `json:"model_info"`
}

// ready makes sure that the server has the model, and returns the model's properties.
func (l *launcher) ready(ctx context.Context, s serverClient, version ollama.VersionJSON) (launch.Model, error) {
	m := launch.Model{Name: l.o.model}
	var show modelShown
	look := func() error {
		return l.ask(ctx, s, http.MethodPost, "/api/show", map[string]string{"model": m.Name}, &show)
	}
	err := look()
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		if err = l.pull(ctx, s, version, err); err == nil {
			err = look()
		}
	}
	if err != nil {
		return m, err
	}
	tools := false
	for _, c := range show.Capabilities {
		switch c {
		case "tools":
			tools = true
		case "vision":
			m.Vision = true
		case "thinking":
			m.Thinking = true
		}
	}
	for key, v := range show.Info {
		if n, ok := v.(float64); ok && strings.HasSuffix(key, ".context_length") {
			m.Context = int(n)
		}
	}
	if !tools {
		l.note("note: the template of %s does not support tools, which coding clients need", m.Name)
	}
	if m.Context > 0 && m.Context < launch.WantedContext {
		l.note("note: the context of %s is %d tokens; coding clients need %d or more", m.Name, m.Context,
			launch.WantedContext)
	}
	return m, nil
}

// pull pulls a model that the server lacks, if the user agrees: into the store if server and program share it, or else
// through the server.
func (l *launcher) pull(ctx context.Context, s serverClient, version ollama.VersionJSON, missing error) error {
	name, err := manifest.ParseName(l.o.model)
	if err != nil {
		return err
	}
	if name.IsLocal() {
		return missing
	}
	store, err := l.openStore()
	shared := err == nil && version.Ingot != "" && version.Store == identity.StoreID(store)
	if hub.IsName(l.requested) {
		if !shared {
			return fmt.Errorf("%w; the server has another store: import it there with `ingot create %s %s`",
				missing, name, l.requested)
		}
		_, err := l.ensure(ctx, l.requested, l.o.yes, mlx.Available)
		return err
	}
	if err := l.wantPull(ctx, name, missing); err != nil {
		return err
	}
	if shared {
		return l.fetchModel(ctx, name)
	}
	l.note("the server is pulling %s", name)
	var done struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	err = s.get(ctx, http.MethodPost, "/api/pull", map[string]any{"model": name.String(), "stream": false}, &done)
	if err == nil && done.Error != "" {
		err = errors.New(done.Error)
	}
	return err
}

// wantPull asks whether to pull a model. It returns missing if the user declines.
func (l *launcher) wantPull(ctx context.Context, name manifest.Name, missing error) error {
	switch {
	case l.o.yes:
		return nil
	case !l.onTerminal():
		return fmt.Errorf("%w; pull it with --yes", missing)
	}
	wanted, err := l.confirm(ctx, fmt.Sprintf("%s is missing; pull it?", name))
	if err == nil && !wanted {
		err = missing
	}
	return err
}

// run starts a conversation with a model, or prints one response if there is no terminal.
func (l *launcher) run(ctx context.Context) error {
	if l.o.configOnly {
		return usagef("%s has no configuration", launchRun)
	}
	remember := true
	if l.o.model == "" && l.onTerminal() {
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
			return usagef("pass --model NAME: no model was launched before")
		}
		l.o.model, remember = saved.Last, false
		l.note("running %s, the last launched model", saved.Last)
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
	if l.quiet {
		args = append(args, "--quiet")
	}
	if file := l.o.server.key.file; file != "" {
		args = append(args, "--api-key-file", file)
	}
	return l.execute(ctx, append(args, l.args...))
}

// stored makes sure that the store has the model.
func (l *launcher) stored(ctx context.Context) error {
	name, err := manifest.ParseName(l.o.model)
	if err != nil {
		return err
	}
	store, err := l.openStore()
	if err != nil {
		return err
	}
	_, missing := store.ResolveRaw(ctx, name)
	if !errors.Is(missing, manifest.ErrNotFound) || name.IsLocal() {
		return missing
	}
	if hub.IsName(l.requested) {
		_, err := l.ensure(ctx, l.requested, l.o.yes, mlx.Available)
		return err
	}
	if err := l.wantPull(ctx, name, missing); err != nil {
		return err
	}
	return l.fetchModel(ctx, name)
}
