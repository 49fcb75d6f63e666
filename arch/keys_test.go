package arch_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// referenceKeys are what transformers reads of a configuration; testdata/gen/arch/keys.py writes them.
type referenceKeys struct {
	// Types are the keys that the code of a model type reads, with their defaults.
	Types map[string]struct {
		Keys  map[string]json.RawMessage
		Names map[string]string // other names of keys
	}
	// Configs are small configurations of the types that have no table.
	Configs map[string]json.RawMessage
	// Tables are by configuration of testdata/tables, and by a key that is left out: what the reference makes of it, as
	// changes of what it makes of the whole one, which is under "". A value of "-" removes a key.
	Tables map[string]map[string]map[string]json.RawMessage
}

func readReferenceKeys(t *testing.T) referenceKeys {
	t.Helper()
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var out referenceKeys
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// changed applies changes to a configuration.
func changed(t *testing.T, config json.RawMessage, changes map[string]json.RawMessage) json.RawMessage {
	t.Helper()
	for key, value := range changes {
		v := string(value)
		if v == `"-"` {
			v = "-"
		}
		config = setKey(t, config, strings.Split(key, "."), v)
	}
	return config
}

// A configuration is read as the reference reads it: the same as the one that the reference saves, where every key is
// given. Without a key, it is read as with the value that the reference takes then, or refused.
func TestDefaultsOfReference(t *testing.T) {
	golden := readReferenceKeys(t)
	why := map[string]string{
		"num_key_value_heads": "the class's own number would not divide the heads of a small model",
		"rotary_dim":          "the class's own number is larger than a head of a small model",
	}
	all := checkpoints(t)
	for name, config := range golden.Configs {
		all = append(all, checkpoint{Name: name, Config: config})
	}
	for _, c := range all {
		table, ok := golden.Tables[c.Name]
		if !ok {
			continue
		}
		whole := changed(t, c.Config, table[""])
		for key, changes := range table {
			config := setKey(t, c.Config, strings.Split(key, "."), "-")
			if key == "" {
				config = c.Config
			}
			got, err := arch.Detect(config)
			if err != nil {
				if key == "" {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue
			}
			if why[key] != "" || why[key[strings.LastIndex(key, ".")+1:]] != "" {
				continue
			}
			explicit := whole
			if key != "" {
				explicit = changed(t, whole, changes)
			}
			want, err := arch.Detect(explicit)
			if err != nil {
				t.Errorf("%s without %q: reads as %s, but with the reference's values: %v", c.Name, key, brief(changes), err)
			} else if d := difference(got, want); d != "" && sameShapes(got, want) {
				t.Errorf("%s without %q: %s; the reference has %s", c.Name, key, d, brief(changes))
			}
		}
	}
}

// sameShapes reports whether two models fit the same checkpoints. If not, the tensors reveal which one is meant.
func sameShapes(a, b arch.Model) bool {
	x, y := a.Table().Specs, b.Table().Specs
	return slices.EqualFunc(x, y, func(s, t table.Spec) bool { return s.Name == t.Name && slices.Equal(s.Shape, t.Shape) })
}

func brief(m map[string]json.RawMessage) string {
	var out []string
	for _, k := range config.SortedKeys(m) {
		out = append(out, k+"="+string(m[k]))
	}
	return strings.Join(out, " ")
}

// difference names the first field in which two models differ.
func difference(a, b arch.Model) string {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if reflect.DeepEqual(a, b) {
		return ""
	}
	var m, n map[string]json.RawMessage
	_ = json.Unmarshal(x, &m)
	_ = json.Unmarshal(y, &n)
	for _, k := range config.SortedKeys(m) {
		if string(m[k]) != string(n[k]) {
			return k + " is " + string(m[k]) + ", want " + string(n[k])
		}
	}
	return "they differ"
}

// others returns values that a key of this one could have.
func others(key, value string) []string {
	switch key {
	case "is_causal", "tie_embedding", "mamba_conv_bias":
		return []string{"false"}
	case "partial_rotary_factor":
		return []string{"0.5", "0.25"}
	case "moe_norm_min":
		return []string{"1"}
	case "position_embedding_type":
		return []string{`"rope"`}
	case "hybrid_override_pattern":
		return []string{`"MEM*"`}
	case "use_bidirectional_attention":
		return []string{`"all"`}
	case "rope_parameters", "rope_scaling":
		return []string{`{"rope_type":"linear","factor":3,"rope_theta":1234}`}
	}
	var v any
	_ = json.Unmarshal([]byte(value), &v)
	switch v := v.(type) {
	case bool:
		return []string{strconv.FormatBool(!v)}
	case float64:
		return []string{decimal(2*v + 1), decimal(v / 2), decimal(v + 1), decimal(v - 1), decimal(v * 2)}
	case string:
		return []string{`"strange"`}
	case []any:
		for i := range v {
			switch e := v[i].(type) {
			case float64:
				v[i] = 1 + 2*e
			case string:
				v[i] = "strange"
			}
		}
		list, _ := json.Marshal(v)
		return []string{string(list), "[]", "[7,7]"}
	case map[string]any:
		return []string{`{"strange":1}`}
	}
	return []string{"true", "0.5", "1", "2", "8", `"strange"`, "[1]"}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Every key that the code of the reference reads has an influence here: another value makes another model, or is
// refused. The others are listed as idle, with the reason.
func TestKeysOfReference(t *testing.T) {
	bases := map[string][]parsedConfig{}
	for _, c := range checkpoints(t) {
		m, err := arch.Detect(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		name := m.Facts().ModelType
		seen := map[string]bool{}
		for _, config := range variants(t, c.Config) {
			if m, err := arch.Detect(config); err == nil && !seen[string(config)] {
				seen[string(config)] = true
				bases[name] = append(bases[name], parsedConfig{config, m})
			}
		}
	}
	silent := map[string][]string{}
	for name, of := range readReferenceKeys(t).Types {
		a := arch.ByName(name)
		as := bases[a.ModelType]
		if name != a.ModelType {
			for _, p := range as {
				config := arch.AsType(p.config, a, name)
				if m, err := a.Parse(config); err == nil {
					as = append(as, parsedConfig{config, m})
				}
			}
		}
		if len(as) == 0 {
			t.Errorf("%s: no configuration", name)
		}
		for key, value := range of.Keys {
			if !arch.IsIdle(key, a) && !slices.ContainsFunc(as, func(p parsedConfig) bool {
				return influences(t, p, key, "", value)
			}) {
				silent[key] = append(silent[key], name+"="+string(value))
			}
		}
		for key, own := range of.Names {
			if !arch.IsIdle(key, a) && !slices.ContainsFunc(as, func(p parsedConfig) bool {
				return influences(t, p, key, own, of.Keys[own])
			}) {
				silent[key] = append(silent[key], name+" (as "+own+")")
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(silent)) {
		slices.Sort(silent[k])
		t.Errorf("%s: %s", k, strings.Join(silent[k], " "))
	}
}

// parsedConfig is a configuration and the model made of it.
type parsedConfig struct {
	config json.RawMessage
	model  arch.Model
}

// variants returns a configuration, and what it is without or with a key that others depend on.
func variants(t *testing.T, config json.RawMessage) []json.RawMessage {
	t.Helper()
	var top map[string]json.RawMessage
	if err := json.Unmarshal(config, &top); err != nil {
		t.Fatal(err)
	}
	config = setKey(t, config, []string{""}, "-") // with sorted keys, as all others
	out := []json.RawMessage{config}
	path := func(key string) []string {
		if _, ok := top["text_config"]; ok {
			return []string{"text_config", key}
		}
		return []string{key}
	}
	for _, key := range []string{
		"layer_types", "layers_block_type", "no_rope_layers", "mlp_layer_types", "indexer_types", "mamba_d_ssm",
		"rope_scaling", "rope_parameters", "mlp_only_layers",
	} {
		out = append(out, setKey(t, config, path(key), "-"))
	}
	plain := config
	for _, key := range []string{
		"layer_types", "mlp_layer_types", "indexer_types", "layers_block_type", "mlp_only_layers",
	} {
		plain = setKey(t, plain, path(key), "-")
	}
	plain = setKey(t, plain, path("num_hidden_layers"), "16")
	unscaled := setKey(t, config, path("rope_parameters"), "-")
	out = append(out, plain, setKey(t, plain, path("first_k_dense_replace"), "2"),
		setKey(t, config, path("num_attention_heads_per_layer"), "-"),
		setKey(t, config, path("expert_selection_fn"), `"sigmoid"`),
		setKey(t, config, path("layer_types"), `["sliding_attention","full_attention"]`),
		setKey(t, config, path("rope_parameters"), `{"full_attention":{"rope_type":"proportional"},"sliding_attention":{}}`),
		setKey(t, config, path("rope_parameters"), `{"full_attention":{"rope_type":"default"},"sliding_attention":{}}`),
		setKey(t, unscaled, path("rope_scaling"), `{"rope_type":"yarn","factor":2}`),
		setKey(t, unscaled, path("rope_scaling"), `{"rope_type":"longrope","short_factor":[1,1,1,1],"long_factor":[2,2,2,2],
			"short_mscale":1.5,"long_mscale":1.5}`),
		setKey(t, plain, path("index_topk_freq"), "2"), setKey(t, plain, path("hybrid_override_pattern"), `"M*M*"`))
	slides := setKey(t, setKey(t, config, path("use_sliding_window"), "true"), path("sliding_window"), "8")
	for _, n := range []string{"0", "1", "2", "28"} {
		out = append(out, setKey(t, setKey(t, slides, path("layer_types"), "-"), path("max_window_layers"), n))
	}
	return out
}

// influences reports whether another value of a key makes another model, or all are refused. With own the key is
// another name of that one, in whose place it is.
func influences(t *testing.T, p parsedConfig, key, own string, value json.RawMessage) bool {
	t.Helper()
	var top, text map[string]json.RawMessage
	_ = json.Unmarshal(p.config, &top)
	_ = json.Unmarshal(top["text_config"], &text)
	path, was, config := []string{key}, top[cmp.Or(own, key)], p.config
	if was == nil && text != nil {
		path, was = []string{"text_config", key}, text[cmp.Or(own, key)]
	}
	if was == nil {
		was = value
	}
	model := p.model
	if own != "" {
		config = setKey(t, config, append(slices.Clone(path[:len(path)-1]), own), "-")
		model, _ = arch.Detect(config)
	}
	accepted := 0
	for _, value := range others(key, string(was)) {
		other, err := arch.Detect(setKey(t, config, path, value))
		switch {
		case err != nil:
		case !reflect.DeepEqual(other, model):
			return true
		default:
			accepted++
		}
	}
	return accepted == 0
}
