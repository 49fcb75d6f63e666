package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/internal/launch/json5"
)

// openclaw is OpenClaw, configured by a JSON5 file (https://docs.openclaw.ai/gateway/configuration). Each of its
// sessions stores its model.
var openclaw = Client{
	Name: "openclaw", Title: "OpenClaw", Home: "https://docs.openclaw.ai/install",
	programs: []string{"openclaw", "clawdbot"}, // the former name
	install: &installer{
		command: []string{"npm", "install", "-g", "openclaw@latest"},
		needs:   []need{{"npm", "https://nodejs.org"}, {"git", "https://git-scm.com"}},
	},
	configure: configureOpenclaw,
	start: func(s Setup) change {
		if len(s.Args) > 0 {
			return change{}
		}
		return change{args: []string{"tui", "--local"}} // a terminal agent without a gateway
	},
}

// openclawFile returns the path of the configuration file and of the state folder.
func openclawFile(s Setup) (file, folder string) {
	folder = env(s.Env, "OPENCLAW_STATE_DIR")
	file = env(s.Env, "OPENCLAW_CONFIG_PATH")
	older := filepath.Join(s.Home, ".clawdbot")
	switch {
	case folder != "":
	case !exists(filepath.Join(s.Home, ".openclaw")) && exists(filepath.Join(older, "clawdbot.json")):
		folder = older
		if file == "" {
			file = filepath.Join(older, "clawdbot.json")
		}
	default:
		folder = filepath.Join(s.Home, ".openclaw")
	}
	if file == "" {
		file = filepath.Join(folder, "openclaw.json")
	}
	return file, folder
}

func configureOpenclaw(s Setup) ([]string, error) {
	file, folder := openclawFile(s)
	wrote, err := edit(file, s, true, func(d *json5.Document) error { return openclawConfig(d, s) })
	var changed []string
	if wrote {
		changed = append(changed, file)
	}
	if err != nil {
		return changed, err
	}
	agents, err := os.ReadDir(filepath.Join(folder, "agents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return changed, err
	}
	for _, agent := range agents {
		path := filepath.Join(folder, "agents", agent.Name(), "sessions", "sessions.json")
		if !exists(path) {
			continue
		}
		wrote, err := edit(path, s, false, func(d *json5.Document) error {
			return d.Batch(func() error { return openclawSessions(d, s.Model.Name) })
		})
		if wrote {
			changed = append(changed, path)
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// openclawConfig adds the server as a provider and makes its model the default for agents without a model of their own.
func openclawConfig(d *json5.Document, s Setup) error {
	provider := []string{"models", "providers", providerID}
	at := func(key string) []string { return slices.Concat(provider, []string{key}) }
	err := errors.Join(
		d.Set(s.URL+"/v1", at("baseUrl")...),
		d.Set(s.key(), at("apiKey")...),
		d.Set("openai-completions", at("api")...),
	)
	if err != nil {
		return err
	}
	old, _ := d.Get(at("models")...)
	list, _ := old.([]any)
	if err := d.Set(openclawModels(list, s.Model), at("models")...); err != nil {
		return err
	}
	ref := providerID + "/" + s.Model.Name
	primary := []string{"agents", "defaults", "model", "primary"}
	if v, _ := d.Get(primary[:3]...); v != nil {
		if _, short := v.(string); short {
			primary = primary[:3]
		}
	}
	if err := d.Set(ref, primary...); err != nil {
		return err
	}
	// If this object exists, it is the list of allowed models.
	allowed := []string{"agents", "defaults", "models"}
	if v, _ := d.Get(allowed...); v != nil {
		if _, listed := d.Get(append(allowed, ref)...); !listed {
			return d.Set(struct{}{}, append(allowed, ref)...)
		}
	}
	return nil
}

// openclawModels adds a model to the provider's list. It keeps what the user configured for the model.
func openclawModels(list []any, m Model) []any {
	input := []any{"text"}
	if m.Vision {
		input = append(input, "image")
	}
	entry := map[string]any{
		"id": m.Name, "name": m.Name, "reasoning": m.Thinking, "input": input,
		"cost": map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
	}
	if m.Context > 0 {
		entry["contextWindow"], entry["maxTokens"] = m.Context, min(m.Context/2, 32<<10)
	}
	list = slices.Clone(list)
	for i, v := range list {
		if old, ok := v.(map[string]any); ok && old["id"] == m.Name {
			list[i] = merge(entry, old)
			return list
		}
	}
	return append(list, entry)
}

// openclawSessions switches sessions to the model. It removes an override by another model, with its provider. A
// session without a model stays without one.
func openclawSessions(d *json5.Document, model string) error {
	for _, id := range d.Keys() {
		override, provider := d.Text(id, "modelOverride"), d.Text(id, "providerOverride")
		if override != "" && (override != model || provider != "" && provider != providerID) {
			if err := d.Delete([]string{id}, "modelOverride", "providerOverride"); err != nil {
				return err
			}
		}
		if d.Text(id, "model") == "" {
			continue
		}
		if err := d.Set(model, id, "model"); err != nil {
			return err
		}
		if d.Text(id, "modelProvider") != "" {
			if err := d.Set(providerID, id, "modelProvider"); err != nil {
				return err
			}
		}
	}
	return nil
}
