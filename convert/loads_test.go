package convert

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime/processor"
)

// foreign are words that only this program knows, or its language.
var foreign = []string{"Go struct", "Go value", "unmarshal", ": json: ", "RawMessage", "interface {}"}

// created creates a model from the tiny checkpoint with a tokenizer and other files, and opens all that a run reads
// before the weights.
func created(t *testing.T, files map[string]string) (create, load error) {
	t.Helper()
	ck := tiny(t, tinyConfig, 1)
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "models", "demo", name))
		if err != nil {
			t.Fatal(err)
		}
		ck.files[name] = string(data)
	}
	for name, text := range files {
		ck.files[name] = text
	}
	store := openStore(t)
	dir := ck.write(t, t.TempDir())
	if _, create = Create(t.Context(), store, modelName(t, "m"), from(dir), Options{}); create != nil {
		return create, nil
	}
	entry := mustResolve(t, store, "m")
	if _, err := processor.Open(store, entry); err != nil {
		return nil, err
	}
	style, err := prompt.Open(store, entry)
	if err != nil {
		return nil, err
	}
	return nil, style.Ready(t.Context(), chat.Request{})
}

// What create accepts, a run can read: whatever a file has in the place of what it should have. Messages are for
// people.
func TestCreatedModelsLoad(t *testing.T) {
	values := []string{`null`, `true`, `-1`, `1.5`, `1e400`, `"x"`, `[]`, `[1]`, `["x"]`, `[null]`, `{}`, `{"content": 5}`,
		`NaN`, `[-Infinity]`}
	keys := map[string][]string{
		"generation_config.json": {"eos_token_id", "bos_token_id", "suppress_tokens", "temperature", "top_k", "top_p",
			"min_p", "repetition_penalty", "do_sample", "max_length", "text_config"},
		"tokenizer_config.json": {"chat_template", "bos_token", "eos_token", "added_tokens_decoder", "model_max_length",
			"extra_special_tokens", "clean_up_tokenization_spaces", "tokenizer_class", "add_bos_token", "unknown_key"},
		"chat_template.json":       {"chat_template"},
		"special_tokens_map.json":  {"bos_token", "additional_special_tokens"},
		"added_tokens.json":        {"<x>"},
		"config.json":              {"eos_token_id", "unknown_key", "rope_scaling", "quantization_config", "rms_norm_eps"},
		"preprocessor_config.json": {"patch_size", "size"},
		"processor_config.json":    {"image_processor"},
	}
	check := func(name, text string) {
		create, load := created(t, map[string]string{name: text})
		if create == nil && load != nil && !errors.Is(load, chat.ErrNoTemplate) {
			t.Errorf("%s: %.80q: created, but %v", name, text, load)
		}
		for _, err := range []error{create, load} {
			for _, word := range foreign {
				if err != nil && strings.Contains(err.Error(), word) {
					t.Errorf("%s: %.80q: %v", name, text, err)
				}
			}
		}
		if create != nil && !strings.Contains(create.Error(), name) {
			t.Errorf("%s: %.80q: the error does not name the file: %v", name, text, create)
		}
	}
	for name, list := range keys {
		for _, text := range append([]string{"", "{", "null null", `{"a" 1}`, "version https://git-lfs"}, values...) {
			check(name, text)
		}
		for _, key := range list {
			for _, value := range values {
				text := `{"` + key + `": ` + value + `}`
				if name == "config.json" {
					text = strings.Replace(tinyConfig, "{", `{"`+key+`": `+value+`,`, 1)
				}
				check(name, text)
			}
		}
	}
}

// A pooling that cannot be computed costs a model that generates its embeddings, with a note. A model that computes
// nothing else is refused.
func TestPoolingIsChecked(t *testing.T) {
	list := func(kinds ...string) string {
		text := ""
		for _, kind := range kinds {
			text += `,{"type": "sentence_transformers.models.` + kind + `", "path": "1_` + kind + `"}`
		}
		return "[" + text[1:] + "]"
	}
	for _, c := range []struct{ modules, config, want string }{
		{list("Transformer", "Pooling", "Normalize"), `{"pooling_mode": "mean"}`, ""},
		{"", `{"pooling_mode_cls_token": true}`, ""},
		{"", "", ""},
		{list("Transformer", "Pooling", "Dense"), `{"pooling_mode": "mean"}`,
			`modules.json: module "Dense" is not supported`},
		{list("Pooling"), "", "1_Pooling/config.json, which modules.json names, is not in the image"},
		{list("Normalize"), "", "modules.json: it lists no Pooling module"},
		{"", `{}`, "1_Pooling/config.json: no pooling mode is set"},
		{"", `{"pooling_mode": "attention"}`, `1_Pooling/config.json: pooling mode "attention" is not supported`},
	} {
		for _, headless := range []bool{false, true} {
			config := tinyConfig
			if headless {
				config = strings.Replace(config, "LlamaForCausalLM", "LlamaModel", 1)
			}
			ck := tiny(t, config, 1)
			if c.modules != "" {
				ck.files["modules.json"] = c.modules
			}
			if c.config != "" {
				ck.files["1_Pooling/config.json"] = c.config
			}
			store := openStore(t)
			r, err := Create(t.Context(), store, modelName(t, "m"), from(ck.write(t, t.TempDir())), Options{})
			warnings := strings.Join(r.Warnings, "\n")
			switch {
			case c.want != "" && headless:
				if !errors.Is(err, source.ErrSource) || !strings.Contains(err.Error(), c.want) ||
					!strings.Contains(err.Error(), "computes embeddings only") {
					t.Errorf("%s %s: %v, want %s", c.modules, c.config, err, c.want)
				}
				continue
			case err != nil:
				t.Errorf("%s %s: %v", c.modules, c.config, err)
				continue
			case c.want != "" && !strings.Contains(warnings, c.want+": the model computes no embeddings"),
				c.want == "" && strings.Contains(warnings, "no embeddings"):
				t.Errorf("%s %s: warnings %s, want %q", c.modules, c.config, warnings, c.want)
			}
			p, err := processor.Open(store, mustResolve(t, store, "m"))
			if err != nil || (p.Pooling.Err == nil) != (c.want == "") {
				t.Errorf("%s %s: a run has %v, %v", c.modules, c.config, err, p.Pooling.Err)
			}
		}
	}
}

func TestTemplatesRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"chat_template": 5}`:                           "chat_template = 5: must",
		`{"chat_template": [5]}`:                         "chat_template[0] = 5: must be an object with name and template",
		`{"chat_template": [{"name": "x"}]}`:             "chat_template[0].template is missing",
		`{"chat_template": {"default": ["x"]}}`:          `chat_template["default"] = ["x"]: must be a text`,
		`{"chat_template": {"default": "{{ x", "a": 1}}`: `chat_template["a"] = 1`,
	} {
		create, _ := created(t, map[string]string{"tokenizer_config.json": text})
		if !errors.Is(create, chat.ErrTemplate) || !strings.Contains(create.Error(), want) {
			t.Errorf("%s: %v, want %s", text, create, want)
		}
		// A TEMPLATE line replaces what cannot be read.
		ck := tiny(t, tinyConfig, 1)
		ck.files["tokenizer_config.json"] = text
		store := openStore(t)
		mustCreate(t, store, "m", parsed(t, "FROM "+ck.write(t, t.TempDir())+"\nTEMPLATE own"), Options{})
		if got := mustTexts(t, store, "m"); got.Template != "own" || got.Templates.Err() != nil {
			t.Errorf("%s: %q, %v", text, got.Template, got.Templates.Err())
		}
	}
	for text, want := range map[string]string{
		`[]`:                         "generation_config.json: a JSON array, want an object",
		`{"eos_token_id": "</s>"}`:   `generation_config.json: eos_token_id = "</s>": must be a token id`,
		`{"suppress_tokens": "a"}`:   "generation_config.json: suppress_tokens: a JSON string, want an array",
		`{"suppress_tokens": [1.5]}`: "generation_config.json: suppress_tokens: a JSON number 1.5, want an integer",
	} {
		create, _ := created(t, map[string]string{"generation_config.json": text})
		if !errors.Is(create, config.ErrBad) || !strings.Contains(create.Error(), want) {
			t.Errorf("%s: %v, want %s", text, create, want)
		}
	}
}

// Numbers that Python writes and JSON lacks do no harm where a key has no influence, and the image keeps the files.
func TestPythonsNumbers(t *testing.T) {
	files := map[string]string{
		"tokenizer_config.json": `{"model_max_length": Infinity, "x": [NaN, -Infinity],
			"chat_template": "NaN {{ messages }}"}`,
		"generation_config.json":  `{"eos_token_id": 2, "typical_p": NaN, "penalty": -Infinity, "temperature": Infinity}`,
		"special_tokens_map.json": `{"x": NaN}`,
		"config.json": strings.Replace(tinyConfig, "{", `{"unknown": [NaN, Infinity, -Infinity], "quantization_config": `+
			`{"quant_method": "fp8", "x": NaN},`, 1),
	}
	create, load := created(t, files)
	if create != nil || load != nil {
		t.Fatal(create, load)
	}
	ck := tiny(t, tinyConfig, 1)
	for name, text := range files {
		ck.files[name] = text
	}
	store := openStore(t)
	result := mustCreate(t, store, "m", from(ck.write(t, t.TempDir())), Options{})
	if all := strings.Join(result.Warnings, "\n"); !strings.Contains(all, "temperature = Infinity is invalid") {
		t.Errorf("warnings %s", all)
	}
	img := mustResolve(t, store, "m").Image
	for name, text := range files {
		if got := readLayer(t, store, img, "file", name); name != "config.json" && got != text ||
			name == "config.json" && (strings.Contains(got, "fp8") || !strings.Contains(got, "[NaN, Infinity, -Infinity]")) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if !json.Valid([]byte(files["tokenizer_config.json"])) && mustTexts(t, store, "m").Template != "NaN {{ messages }}" {
		t.Errorf("template %q", mustTexts(t, store, "m").Template)
	}
}
