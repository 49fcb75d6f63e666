package arch_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
)

// A configuration is read as another type: by its keys, and with the type's defaults.
func TestDetectAs(t *testing.T) {
	const kv = `"num_key_value_heads": 2`
	for _, c := range []struct {
		name, config, as, class string
		declared                string
		known                   bool
		unread                  string
	}{
		{"unknown", "", "llama", "LlamaForCausalLM", `model_type "new", architectures ["NewForCausalLM"]`, false, ""},
		{
			"alias", `"model_type": "new"`, "mistral", "MistralForCausalLM", `model_type "new", architectures []`, false, "",
		},
		{
			"known type", `"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]`, "llama", "LlamaForCausalLM",
			`model_type "qwen3", architectures ["Qwen3ForCausalLM"]`, true, "",
		},
		{
			"known type, unknown class", `"model_type": "llama", "architectures": ["LlamaForTokenClassification"]`, "llama",
			"LlamaForCausalLM", `model_type "llama", architectures ["LlamaForTokenClassification"]`, false, "",
		},
		{
			"unread keys", `"model_type": "new", "residual_multiplier": 0.5, "attention_dropout": 0.1, "use_cache": true, ` +
				`"sandwich": false, "logits_scaling": 8`, "llama", "LlamaForCausalLM", `model_type "new", architectures []`, false,
			"logits_scaling residual_multiplier",
		},
		{
			"a type that reads them", `"model_type": "new", "residual_multiplier": 0.5, "logits_scaling": 8`, "granite",
			"GraniteForCausalLM", `model_type "new", architectures []`, false, "",
		},
		{"same type", `"model_type": "llama"`, "llama", "LlamaForCausalLM", "", false, ""},
		{
			"neither type nor class", `"a": 1`, "llama", "LlamaForCausalLM", `model_type "", architectures []`, false, "a",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.config == "" {
				c.config = `"model_type": "new", "architectures": ["NewForCausalLM"]`
			}
			config := []byte("{" + c.config + ", " + kv + ", " + bare(t) + "}")
			r, err := arch.DetectAs(config, c.as)
			if err != nil {
				t.Fatal(err)
			}
			if r.Declared != c.declared || r.Known != c.known || strings.Join(r.Unread, " ") != c.unread {
				t.Errorf("%q, known %t, unread %q", r.Declared, r.Known, r.Unread)
			}
			m, err := arch.Detect(r.Config) // as a runtime does
			if err != nil {
				t.Fatalf("%v: %s", err, r.Config)
			}
			if got := m.Facts().Architecture; got != c.class || r.Model.Facts() != m.Facts() {
				t.Errorf("class %s, facts %+v and %+v", got, r.Model.Facts(), m.Facts())
			}
			if changed := string(r.Config) != string(config); changed != (c.declared != "") {
				t.Errorf("changed %t: %s", changed, r.Config)
			}
		})
	}
}

// bare returns the keys of a llama that say nothing of its type.
func bare(t *testing.T) string {
	t.Helper()
	m := map[string]json.RawMessage{}
	bare := with(t, "model_type", "-", "architectures", "-", "num_key_value_heads", "-")
	if err := json.Unmarshal(bare, &m); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(out), "{}")
}

func TestDetectAsRefuses(t *testing.T) {
	for _, c := range []struct {
		config, as string
		is         error
		want       string
	}{
		{"{}", "lama", arch.ErrUnknownArchitecture, `model type "lama": unknown architecture (similar: llama; `},
		{"{}", "", arch.ErrUnknownArchitecture, `model type ""`},
		{"[", "llama", config.ErrBad, "config.json: "},
		{`{"architectures": 5}`, "llama", config.ErrBad, "architectures = 5"},
		{`{"model_type": "new"}`, "llama", config.ErrBad, "config.json: vocab_size: missing (read as llama)"},
	} {
		_, err := arch.DetectAs([]byte(c.config), c.as)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %q: %v", c.config, c.as, err)
		}
	}
}

// Every type can be asked for by every name, and then is detected as itself.
func TestAsEveryType(t *testing.T) {
	for _, c := range checkpoints(t) {
		m, err := arch.Detect(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		a := arch.ByName(m.Facts().ModelType)
		strange := setKey(t, setKey(t, c.Config, []string{"model_type"}, `"new"`), []string{"architectures"}, `["New"]`)
		for _, name := range append([]string{a.ModelType}, a.Aliases...) {
			r, err := arch.DetectAs(strange, name)
			if err != nil {
				continue // some variants of a type need keys that others lack
			}
			again, err := arch.Detect(r.Config)
			if err != nil || again.Facts().ModelType != a.ModelType {
				t.Errorf("%s as %s: %v", c.Name, name, err)
			}
			if got := again.Facts().Architecture; !slices.Contains(a.Architectures, got) {
				t.Errorf("%s as %s: class %s", c.Name, name, got)
			}
		}
	}
}

// What checkpoints of plain decoders declare is read, or known to be idle. The exceptions are switched off.
func TestUnreadOfOwnTypes(t *testing.T) {
	fine, seen := []string{"original_max_position_embeddings"}, 0
	plain := strings.Fields("llama qwen2 qwen3 gemma gemma2 granite olmo olmo2 olmo3 cohere cohere2 phi3 apertus glm4 " +
		"smollm3 exaone4 seed_oss arcee starcoder2 stablelm nemotron helium gpt_neox")
	for _, c := range checkpoints(t) {
		m, err := arch.Detect(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		name := m.Facts().ModelType
		if !slices.Contains(plain, name) {
			continue
		}
		seen++
		for _, key := range arch.UnreadOf(c.Config, arch.ByName(name), m) {
			if !slices.Contains(fine, key) {
				t.Errorf("%s does not read %s", c.Name, key)
			}
		}
	}
	if seen < 2*len(plain) {
		t.Errorf("only %d checkpoints", seen)
	}
}
