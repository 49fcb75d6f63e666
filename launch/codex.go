package launch

import (
	"encoding/json"
	"strconv"
)

// providerID is what clients that know many providers call this one.
const providerID = "ingot"

// codex is Codex, whose arguments go before its configuration (https://developers.openai.com/codex/config-reference): -c KEY=VALUE, in TOML.
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

// quoted is a basic string of TOML, of which those of JSON are a part.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // no string has one
		return `""`
	}
	return string(b)
}
