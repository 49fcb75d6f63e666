package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
)

// modelShown is the part of the server's /api/show response that launch uses.
type modelShown struct {
	Capabilities []string       `json:"capabilities"`
	Info         map[string]any `json:"model_info"`
}

// ready makes sure that the server has the model, and returns the model's properties.
func (l *launcher) ready(ctx context.Context, s servers.Client, version ollama.VersionJSON) (launch.Model, error) {
	m := launch.Model{Name: l.o.model}
	var show modelShown
	look := func() error {
		return l.ask(ctx, s, http.MethodPost, "/api/show", map[string]string{"model": m.Name}, &show)
	}
	err := look()
	var status *servers.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
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
		l.Note("note: the template of %s does not support tools, which coding clients need", m.Name)
	}
	if m.Context > 0 && m.Context < launch.WantedContext {
		l.Note("note: the context of %s is %d tokens; coding clients need %d or more", m.Name, m.Context,
			launch.WantedContext)
	}
	return m, nil
}

// pull pulls a model that the server lacks, if the user agrees: into the store if server and program share it, or else
// through the server.
func (l *launcher) pull(ctx context.Context, s servers.Client, version ollama.VersionJSON, missing error) error {
	name, err := manifest.ParseName(l.o.model)
	if err != nil {
		return err
	}
	if name.IsLocal() {
		return missing
	}
	store, err := l.OpenStore()
	shared := err == nil && version.Ingot != "" && version.Store == identity.StoreID(store)
	if hub.IsName(l.requested) {
		if !shared {
			return fmt.Errorf("%w; the server has another store: import it there with `ingot create %s %s`",
				missing, name, l.requested)
		}
		_, err := models.Ensure(ctx, l.App, l.requested, l.o.yes, mlx.Available)
		return err
	}
	if err := l.wantPull(ctx, name, missing); err != nil {
		return err
	}
	if shared {
		return models.PullModel(ctx, l.App, name)
	}
	l.Note("the server is pulling %s", name)
	var done struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	err = s.Get(ctx, http.MethodPost, "/api/pull", map[string]any{"model": name.String(), "stream": false}, &done)
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
	case !l.OnTerminal():
		return fmt.Errorf("%w; pull it with --yes", missing)
	}
	wanted, err := l.Confirm(ctx, fmt.Sprintf("%s is missing; pull it?", name))
	if err == nil && !wanted {
		err = missing
	}
	return err
}

// stored makes sure that the store has the model.
func (l *launcher) stored(ctx context.Context) error {
	name, err := manifest.ParseName(l.o.model)
	if err != nil {
		return err
	}
	store, err := l.OpenStore()
	if err != nil {
		return err
	}
	_, missing := store.ResolveRaw(ctx, name)
	if !errors.Is(missing, manifest.ErrNotFound) || name.IsLocal() {
		return missing
	}
	if hub.IsName(l.requested) {
		_, err := models.Ensure(ctx, l.App, l.requested, l.o.yes, mlx.Available)
		return err
	}
	if err := l.wantPull(ctx, name, missing); err != nil {
		return err
	}
	return models.PullModel(ctx, l.App, name)
}
