package settings

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// GenerationParameters returns the parameters of a generation_config.json that a Modelfile can also set. End-of-text
// tokens are not among them; the runtime reads them from the file. Invalid values are omitted, with a warning.
func GenerationParameters(data []byte) (params map[string]any, warnings []string) {
	params = map[string]any{}
	var c map[string]json.RawMessage
	if pyjson.Unmarshal(data, &c) != nil {
		return params, []string{"generation_config.json is not a JSON object; its parameters are ignored"}
	}
	number := func(key, name string, least float64) {
		raw, ok := c[key]
		if !ok || string(raw) == "null" {
			return
		}
		p, _ := parameters.Lookup(name)
		whole := p.Type == parameters.Int
		var v float64
		if json.Unmarshal(raw, &v) != nil || !(v >= least && v <= p.Max) || whole && v != math.Trunc(v) {
			warnings = append(warnings, fmt.Sprintf("generation_config.json: %s = %s is invalid and ignored",
				key, clip.Text(string(pyjson.AsPython(raw)), 80)))
			return
		}
		if whole {
			params[name] = int64(v)
			return
		}
		params[name] = v
	}
	number("temperature", "temperature", 0)
	number("top_k", "top_k", 0)
	number("top_p", "top_p", 0)
	number("min_p", "min_p", 0)
	number("repetition_penalty", "repeat_penalty", 1e-3) // it divides by it
	if string(c["do_sample"]) == "false" {               // transformers then ignores all others
		params["temperature"] = 0.0
	}
	return params, warnings
}
