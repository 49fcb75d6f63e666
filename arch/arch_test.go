package arch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
)

const base = `"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":384,"hidden_size":64,` +
	`"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4`

// with returns the base configuration with keys replaced or added, or removed if their value is "-".
func with(t *testing.T, pairs ...string) []byte {
	t.Helper()
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte("{"+base+"}"), &m); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if m[pairs[i]] = json.RawMessage(pairs[i+1]); pairs[i+1] == "-" {
			delete(m, pairs[i])
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustLlama(t *testing.T, pairs ...string) *types.Llama {
	t.Helper()
	m, err := types.ParseLlama(with(t, pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLlamaDefaults(t *testing.T) {
	want := &types.Llama{
		Common: config.Common{
			Architecture: "LlamaForCausalLM", Vocab: 384, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 16,
			Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2}, Prefix: "model.",
		},
		Intermediate: 96, Activation: "silu",
		Rope: config.Rope{Type: config.RopeDefault, Theta: 10000, PartialFactor: 1},
	}
	if d := cmp.Diff(want, mustLlama(t)); d != "" {
		t.Error(d)
	}
}

func TestLlamaKeys(t *testing.T) {
	got := mustLlama(t, "num_key_value_heads", "2", "head_dim", "32", "rms_norm_eps", "1e-05", "rope_theta", "500000",
		"attention_bias", "true", "mlp_bias", "true", "tie_word_embeddings", "true", "max_position_embeddings", "4096.0",
		"torch_dtype", `"bfloat16"`, "bos_token_id", "null", "eos_token_id", "[5, 6]", "hidden_act", `"swish"`,
		"rope_scaling", `{"type":"yarn","factor":4,"original_max_position_embeddings":1024}`)
	want := &types.Llama{
		Common: config.Common{
			Architecture: "LlamaForCausalLM", DType: "bfloat16", Vocab: 384, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2,
			HeadDim: 32, Context: 4096, NormEps: 1e-5, AttentionBias: true, OutputBias: true, MLPBias: true,
			TieEmbeddings: true, EOS: []int32{5, 6}, Prefix: "model.",
		},
		Intermediate: 96, Activation: "silu",
		Rope: config.Rope{Type: config.RopeYarn, Theta: 500000, PartialFactor: 1, Factor: 4, OriginalMax: 1024, BetaFast: 32,
			BetaSlow: 1,
			Truncate: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The key styles of transformers 4 and 5 are equivalent.
func TestKeyStylesAgree(t *testing.T) {
	four := mustLlama(t, "rope_theta", "500000.0", "torch_dtype", `"float32"`, "rope_scaling",
		`{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,`+
			`"original_max_position_embeddings":512}`)
	five := mustLlama(t, "dtype", `"float32"`, "rope_parameters",
		`{"rope_theta":500000.0,"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,`+
			`"original_max_position_embeddings":512}`)
	if d := cmp.Diff(four, five); d != "" {
		t.Error(d)
	}
}

func TestBadConfig(t *testing.T) {
	llama3 := func(s string) string {
		return `{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4` + s + `}`
	}
	for _, c := range []struct{ key, value, want string }{
		{"vocab_size", "-", "config.json: vocab_size: missing"},
		{"hidden_size", "null", "config.json: hidden_size: missing"},
		{"vocab_size", "0", "config.json: vocab_size = 0: must be > 0"},
		{"vocab_size", "-5", "config.json: vocab_size = -5: must be > 0"},
		{"vocab_size", "1.5", "config.json: vocab_size = 1.5: must be an integer"},
		{"vocab_size", `"384"`, `config.json: vocab_size = "384": must be an integer`},
		{"vocab_size", "true", "config.json: vocab_size = true: must be an integer"},
		{"vocab_size", "9223372036854775808", "must be an integer"},
		{"vocab_size", "9223372036854775807", "config.json: vocab_size = 9223372036854775807: must be <= "},
		{"num_hidden_layers", "1000000000", "config.json: num_hidden_layers = 1000000000: must be <= "},
		{"hidden_size", "66", "config.json: hidden_size = 66: must be a multiple of num_attention_heads = 4"},
		{"hidden_size", "2", "config.json: hidden_size = 2: must be a multiple of num_attention_heads = 4"},
		{"hidden_size", "12", "config.json: hidden_size = 12: must give an even head size"},
		{"hidden_size", "1048576", "config.json: hidden_size = 1048576: must give a head size <= 4096"},
		{"head_dim", "0", "config.json: head_dim = 0: must be > 0"},
		{"head_dim", "17", "config.json: head_dim = 17: must give an even head size"},
		{"num_key_value_heads", "3", "config.json: num_key_value_heads = 3: must divide num_attention_heads = 4"},
		{"num_key_value_heads", "8", "config.json: num_key_value_heads = 8: must divide num_attention_heads = 4"},
		{"num_key_value_heads", "0", "config.json: num_key_value_heads = 0: must be > 0"},
		{"rms_norm_eps", "0", "config.json: rms_norm_eps = 0: must be > 0"},
		{"rms_norm_eps", `"x"`, `config.json: rms_norm_eps = "x": must be a number`},
		{"hidden_act", `"gelu"`, `config.json: hidden_act = "gelu": must be "silu"`},
		{"attention_bias", "1", "config.json: attention_bias = 1: must be true or false"},
		{"eos_token_id", `["x"]`, "config.json: eos_token_id = [\"x\"]: must be a token id"},
		{"eos_token_id", "-1", "config.json: eos_token_id = -1: must be a token id"},
		{"rope_theta", "0", "config.json: rope_theta = 0: must be > 1e-18"},
		{"rope_theta", "1e400", "config.json: rope_theta = 1e400: must be a number"},
		{"rope_scaling", "3", "config.json: rope_scaling = 3: must be an object"},
		{"rope_scaling", `{"type":"linear","factor":0}`, "config.json: rope_scaling.factor = 0: must be > 0"},
		{"rope_scaling", `{"type":"linear"}`, "config.json: rope_scaling.factor: missing"},
		{"rope_scaling", `{"type":"dynamic"}`, "config.json: rope_scaling.factor: missing"},
		{
			"rope_scaling", `{"type":"ntk","factor":2}`,
			`config.json: rope_scaling.type = "ntk": must be one of default, linear, llama3, yarn, longrope, dynamic`,
		},
		{
			"rope_parameters", `{"rope_type":"longrope","rope_theta":1e4}`, "config.json: rope_parameters.short_factor: missing",
		},
		{
			"rope_parameters", `{"rope_type":"proportional"}`,
			`config.json: rope_parameters.rope_type = "proportional": must be one of`,
		},
		{"rope_parameters", `{"full_attention":{"rope_type":"default"}}`, "config.json: rope_parameters.full_attention = "},
		{"rope_scaling", `{"rope_type":"llama3","factor":8}`, "config.json: rope_scaling.low_freq_factor: missing"},
		{
			"rope_scaling", `{"rope_type":"llama3","factor":8,"low_freq_factor":1}`,
			"config.json: rope_scaling.high_freq_factor: missing",
		},
		{
			"rope_scaling", `{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":3}`,
			"config.json: rope_scaling.high_freq_factor = 3: must be >= 4",
		},
		{
			"rope_scaling", llama3(`,"original_max_position_embeddings":0`),
			"config.json: rope_scaling.original_max_position_embeddings = 0: must be > 0",
		},
		{"rope_scaling", llama3(`,"partial_rotary_factor":0.5`), "config.json: partial_rotary_factor = 0.5: must be 1"},
		{
			"rope_scaling", `{"type":"yarn","factor":2,"beta_fast":1,"beta_slow":4}`,
			"config.json: rope_scaling.beta_fast = 1: must leave beta_fast >= beta_slow",
		},
		{
			"rope_scaling", `{"type":"yarn","factor":2,"attention_factor":0}`,
			"config.json: rope_scaling.attention_factor = 0: must be > 0",
		},
		{
			"rope_scaling", `{"type":"yarn","factor":2,"rope_theta":1}`, "config.json: rope_scaling.rope_theta = 1: must be > 1",
		},
		{"rope_scaling", `{"type":"yarn"}`, "config.json: rope_scaling.factor: missing"},
		{"rope_scaling", `{"type":"yarn","factor":-2}`, "config.json: rope_scaling.factor = -2: must be > 0"},
		{
			"rope_scaling", `{"type":"yarn","factor":2,"truncate":"no"}`,
			`config.json: rope_scaling.truncate = "no": must be true or false`,
		},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			_, err := arch.Detect(with(t, c.key, c.value))
			if !errors.Is(err, config.ErrBad) {
				t.Fatalf("error %v, want a bad configuration", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, c.want)
			}
		})
	}
}

func TestBadJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "the JSON ends too early"},
		{"null", "null, want an object"},
		{"[1]", "a JSON array, want an object"},
		{"{\n\"a\": 1,\n}", "line 3: invalid character"},
		{"{" + base, "the JSON ends too early"},
		{"{" + base + "} {}", "text after the JSON object"},
		{"{\"model_type\":\"\xff\"}", "not UTF-8"},
		{`{"model_type": 3}`, "model_type = 3: must be a string"},
		{`{"architectures": "LlamaForCausalLM"}`, "must be a list of strings"},
	} {
		_, err := arch.Detect([]byte(c.in))
		if !errors.Is(err, config.ErrBad) || !strings.HasPrefix(err.Error(), "config.json: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.in, err, c.want)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		modelType, classes string
		known              bool
	}{
		{`"llama"`, `["LlamaForCausalLM"]`, true},
		{`"llama"`, "null", true},
		{`"llama"`, "[]", true},
		{"-", `["LlamaForCausalLM"]`, true},
		{`"mistral"`, `["MistralForCausalLM"]`, true},
		{`"mistral"`, "-", true},
		{"-", `["MistralForCausalLM"]`, true},
		{"-", "-", false},
		{`"llama"`, `["LlamaForSequenceClassification"]`, false},
		{`"rwkv"`, `["LlamaForCausalLM"]`, false},
		{`"rwkv"`, "-", false},
		{"-", `["RwkvForCausalLM"]`, false},
	} {
		_, err := arch.Detect(with(t, "model_type", c.modelType, "architectures", c.classes, "num_key_value_heads", "2"))
		if c.known != (err == nil) || (!c.known && !errors.Is(err, arch.ErrUnknownArchitecture)) {
			t.Errorf("model_type %s, architectures %s: error %v", c.modelType, c.classes, err)
		}
	}
	_, err := arch.Detect(with(t, "model_type", `"llama"`, "architectures", `["MambaForCausalLM"]`))
	if err == nil || !strings.Contains(err.Error(), "(known: llama as LlamaForCausalLM, ") {
		t.Errorf("a known type of another class: %v", err)
	}
	_, err = arch.Detect(with(t, "model_type", `"albert"`, "architectures", `["AlbertForMaskedLM"]`))
	want := fmt.Sprintf("config.json: model_type %q, architectures [%q]: unknown architecture "+
		"(`ingot create --help` lists the %d known types)", "albert", "AlbertForMaskedLM", len(arch.Types()))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = arch.Detect(with(t, "model_type", `"Qwen2-moe"`, "architectures", "-"))
	if err == nil || !strings.Contains(err.Error(), "unknown architecture (similar: qwen2_moe, ") {
		t.Errorf("a name like a known one: %v", err)
	}
}

// Mistral has its own defaults, and null differs from an absent key.
func TestMistral(t *testing.T) {
	type facts struct {
		Class           string
		Window, KVHeads int
		Context         int
		Bias            bool
	}
	const name = "MistralForCausalLM"
	for _, c := range []struct {
		modelType, classes string
		keys               []string
		want               facts
	}{
		{`"mistral"`, "-", nil, facts{name, 4096, 8, 131072, false}},
		{"-", `["MistralForCausalLM"]`, nil, facts{name, 4096, 8, 131072, false}},
		{
			`"mistral"`, `["MistralForCausalLM"]`, []string{"sliding_window", "null", "num_key_value_heads", "null"},
			facts{name, 0, 16, 131072, false},
		},
		{
			`"mistral"`, "-",
			[]string{"sliding_window", "8", "attention_bias", "true", "mlp_bias", "true", "max_position_embeddings", "64"},
			facts{name, 8, 8, 64, false},
		},
		{`"llama"`, `["LlamaForCausalLM"]`, []string{"sliding_window", "8"}, facts{"LlamaForCausalLM", 0, 16, 2048, false}},
	} {
		m := mustLlama(t, append([]string{"model_type", c.modelType, "architectures", c.classes, "num_attention_heads", "16"},
			c.keys...)...)
		if got := (facts{m.Architecture, m.Window, m.KVHeads, m.Context, m.AttentionBias || m.MLPBias}); got != c.want {
			t.Errorf("%s %s %v: %+v, want %+v", c.modelType, c.classes, c.keys, got, c.want)
		}
	}
}

func TestFacts(t *testing.T) {
	m := mustLlama(t, "num_key_value_heads", "2", "tie_word_embeddings", "true", "torch_dtype", `"float16"`)
	want := config.Facts{
		ModelType: "llama", Architecture: "LlamaForCausalLM", DType: "float16", Vocab: 384, Hidden: 64, Layers: 2,
		Context: 2048,
		Params:  384*64 + 2*(2*64+2*64*64+2*32*64+3*96*64) + 64,
	}
	if d := cmp.Diff(want, m.Facts()); d != "" {
		t.Error(d)
	}
}

// A model's context is the length that its rope is scaled to.
func TestContextOfScaledRopes(t *testing.T) {
	for _, c := range []struct {
		rope string
		want int64
	}{
		{`{"rope_type":"dynamic","factor":4}`, 4 * 2048},
		{`{"rope_type":"dynamic","factor":1e12}`, config.MaxContext},
		{`{"rope_type":"yarn","factor":4,"original_max_position_embeddings":1024}`, 4 * 1024},
		{`{"rope_type":"yarn","factor":4}`, 4 * 2048},
		{`{"rope_type":"yarn","factor":4,"original_max_position_embeddings":256}`, 2048},
		{`{"rope_type":"linear","factor":4}`, 2048},
		{
			`{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":1024}`,
			2048,
		},
	} {
		if got := mustLlama(t, "rope_scaling", c.rope).Facts().Context; got != c.want {
			t.Errorf("%s: %d positions, want %d", c.rope, got, c.want)
		}
	}
}

// The largest accepted configuration does not overflow.
func TestBoundsFitInt64(t *testing.T) {
	m := mustLlama(t, "vocab_size", "67108864", "hidden_size", "1048576", "intermediate_size", "1048576",
		"num_hidden_layers", "4096", "num_attention_heads", "4096", "head_dim", "4096")
	if p := m.Table().Params(); p <= 0 || p > 1<<59 {
		t.Errorf("%d parameters: sizes in bits overflow", p)
	}
}
