package launch

import "encoding/json"

// opencode is OpenCode, which merges configuration from its environment over that from files
// (https://opencode.ai/docs/config).
var opencode = Client{
	Name: "opencode", Title: "OpenCode", Home: "https://opencode.ai/docs",
	programs: []string{"opencode"}, places: []string{".opencode/bin/opencode"},
	start: func(s Setup) change {
		const name = "OPENCODE_CONFIG_CONTENT"
		model := map[string]any{"name": s.Model.Name, "reasoning": s.Model.Thinking, "attachment": s.Model.Vision,
			"tool_call": true}
		if n := s.Model.Context; n > 0 {
			model["limit"] = map[string]any{"context": n, "output": min(n/2, 32<<10)}
		}
		config := map[string]any{
			"$schema": "https://opencode.ai/config.json",
			"provider": map[string]any{providerID: map[string]any{
				"npm":     "@ai-sdk/openai-compatible",
				"name":    "ingot",
				"options": map[string]any{"baseURL": s.URL + "/v1", "apiKey": s.key()},
				"models":  map[string]any{s.Model.Name: model},
			}},
			"model":       providerID + "/" + s.Model.Name,
			"small_model": providerID + "/" + s.Model.Name,
		}
		var users map[string]any
		if json.Unmarshal([]byte(env(s.Env, name)), &users) == nil {
			config = merge(users, config)
		}
		b, err := json.Marshal(config)
		if err != nil { // cannot fail: all values are plain data
			return change{}
		}
		return change{env: []variable{{name, string(b)}}}
	},
}

// merge returns below with the values of above. Objects merge recursively.
func merge(below, above map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range below {
		out[k] = v
	}
	for k, v := range above {
		a, ok := v.(map[string]any)
		if b, is := out[k].(map[string]any); ok && is {
			out[k] = merge(b, a)
			continue
		}
		out[k] = v
	}
	return out
}
