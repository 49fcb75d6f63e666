package launch

import (
	"encoding/json"
	"strconv"
)

// providerID identifies this server in clients that support several providers.
const providerID = "ingot"

// codex is Codex. Arguments override its configuration file (https://developers.openai.com/codex/config-reference): -c
// KEY=VALUE, in TOML.
var codex = Client{
	Name: "codex", Title: "Codex", Home: "https://developers.openai.com/codex/cli",
	programs: []string{"codex"},
	start: func(s Setup) change {
		const key = "OPENAI_API_KEY"
		provider := "model_providers." + providerID + "."
		c := change{env: []variable{{key, s.key()}}}
		for _, o := range []struct{ name, value string }{
			{"model", quoted(s.Model.Name)},
			{"model_provider", quoted(providerID)},
			{provider + "name", quoted("ingot")},
			{provider + "base_url", quoted(s.URL + "/v1")},
			{provider + "wire_api", quoted("responses")},
			{provider + "env_key", quoted(key)},
		} {
			c.args = append(c.args, "-c", o.name+"="+o.value)
		}
		if s.Model.Context > 0 {
			c.args = append(c.args, "-c", "model_context_window="+strconv.Itoa(s.Model.Context))
		}
		return c
	},
}

// quoted returns s as a TOML basic string. JSON strings are a subset of those.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return `""`
	}
	return string(b)
}
