package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/manifest/store"
)

// choose asks the user to pick from a list, by number or by text. An empty line picks the offered entry, or the first
// if offered is not on the list.
func (l *launcher) choose(ctx context.Context, what string, list []string, offered string) (string, error) {
	if !slices.Contains(list, offered) {
		offered = list[0]
	}
	for i, text := range list {
		l.Tell("%3d  %s", i+1, text)
	}
	in := bufio.NewReader(l.Stdin(ctx))
	for {
		fmt.Fprintf(l.Err, "%s [%s]: ", what, terminal.Line(offered))
		line, err := in.ReadString('\n')
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		line = strings.TrimSpace(line)
		n, notNumber := strconv.Atoi(line)
		switch {
		case err != nil && line == "":
			fmt.Fprintln(l.Err)
			return "", errors.New("no choice was made")
		case line == "":
			return offered, nil
		case notNumber == nil && n >= 1 && n <= len(list):
			return list[n-1], nil
		case slices.Contains(list, line):
			return line, nil
		}
		l.Tell("%q is not on the list", line)
	}
}

// chooseClient asks the user which of the installed clients to launch. It prints why the others are not available.
func (l *launcher) chooseClient(ctx context.Context) (string, error) {
	home, _ := os.UserHomeDir() // without a home folder, only the PATH is searched
	list := []string{launchRun}
	for _, c := range launch.Clients() {
		if _, err := c.Find(home); err == nil {
			list = append(list, c.Name)
		} else {
			l.Tell("     %v", err)
		}
	}
	return l.choose(ctx, "launch", list, launchRun)
}

// chooseModel asks the user to pick a model of the server. The default is the client's last model, or else the last
// launched one.
func (l *launcher) chooseModel(ctx context.Context, s servers.Client, client string) (string, error) {
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := l.ask(ctx, s, http.MethodGet, "/api/tags", nil, &tags); err != nil {
		return "", err
	}
	var list []string
	sort.Slice(tags.Models, func(i, j int) bool { return tags.Models[i].Name < tags.Models[j].Name })
	for _, m := range tags.Models {
		list = append(list, m.Name)
	}
	return l.chooseOf(ctx, list, client)
}

// chooseStored asks the user to pick a model of the store.
func (l *launcher) chooseStored(ctx context.Context) (string, error) {
	store, err := store.Open("")
	if err != nil {
		return "", err
	}
	models, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	var list []string
	for _, m := range models {
		list = append(list, m.Name.String())
	}
	return l.chooseOf(ctx, list, "")
}

func (l *launcher) chooseOf(ctx context.Context, list []string, client string) (string, error) {
	if len(list) == 0 {
		return "", errors.New("there are no models; add one with `ingot pull` or `ingot create`, " +
			"or name one to pull with --model")
	}
	offered := ""
	if l.saved != "" {
		saved, err := launch.ReadSaved(l.saved)
		if err != nil {
			return "", err
		}
		if offered = saved.Clients[client].Model; !slices.Contains(list, offered) {
			offered = saved.Last
		}
	}
	return l.choose(ctx, "model", list, offered)
}

// printStart prints shell commands that start a client.
func (l *launcher) printStart(s launch.Start) error {
	var b strings.Builder
	for _, name := range s.Removed {
		fmt.Fprintf(&b, "unset %s\n", name)
	}
	for _, kv := range s.Set {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, shellQuote(value))
	}
	line := []string{shellQuote(s.Path)}
	for _, arg := range s.Args {
		line = append(line, shellQuote(arg))
	}
	fmt.Fprintf(&b, "# %s\n", terminal.Line(strings.Join(line, " "))) // escaped, since a line break would end the comment
	_, err := fmt.Fprint(l.Out, b.String())
	return err
}

// shellQuote quotes a text as one word for a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
