package declared

import (
	"encoding/json"
	"maps"
	"testing"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"none", "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1\n}\n"},
		{"no object", "[1]", "[1]"},
		{"last", "{\n  \"a\": 1,\n  \"quantization\": {\"bits\": 4}\n}\n", "{\n  \"a\": 1\n}\n"},
		{"both, last", "{\"a\":1,\"quantization\":{},\"quantization_config\":{\"x\":[{}]}}", "{\"a\":1}"},
		{"first", "{\n  \"quantization\": {\"bits\": 4},\n  \"a\": 1\n}", "{\n  \"a\": 1\n}"},
		{"both, first", "{ \"quantization\": {}, \"quantization_config\": {}, \"a\": 1 }", "{ \"a\": 1 }"},
		{
			"between", "{\"a\": 1, \"quantization_config\": {}, \"b\": {\"quantization\": {}}}",
			"{\"a\": 1, \"b\": {\"quantization\": {}}}",
		},
		{
			"apart", "{\"a\": 1, \"quantization\": {}, \"b\": 2, \"compression_config\": {}, \"c\": 3}",
			"{\"a\": 1, \"b\": 2, \"c\": 3}",
		},
		{"alone", "{\"quantization\": {}}", "{}"},
		{
			"text_config", "{\"text_config\": {\"x\": 1, \"quantization_config\": {}}, \"a\": 1}",
			"{\"text_config\": {\"x\": 1}, \"a\": 1}",
		},
		{"null stays", `{"quantization_config": null}`, `{"quantization_config": null}`},
	} {
		if got := string(Strip([]byte(c.config))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The result is valid JSON with the other keys unchanged, and Strip is idempotent.
func FuzzStrip(f *testing.F) {
	f.Add(`{"a": 1, "quantization": {"bits": 4}, "text_config": {"quantization_config": {}, "b": 2}}`)
	f.Add(`{"quantization": {}, "quantization_config": {} , "compression_config":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var before, after map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &before) != nil {
			_ = Strip([]byte(text)) // must not panic
			return
		}
		out := Strip([]byte(text))
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
		for _, key := range []string{MLX, HF, Compression} {
			if IsObject(before[key]) && IsObject(after[key]) {
				t.Errorf("%q has %s", out, key)
			}
			delete(before, key)
			delete(after, key)
		}
		delete(before, "text_config")
		delete(after, "text_config")
		if !maps.EqualFunc(before, after, same) {
			t.Errorf("%q of %q", out, text)
		}
		if again := Strip(out); string(again) != string(out) {
			t.Errorf("%q becomes %q", out, again)
		}
	})
}
