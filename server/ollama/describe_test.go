package ollama

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/opencontainers/go-digest"
)

// response returns the response to a request.
func response[T any](t *testing.T, f *fixture, method, path, body string, headers ...string) T {
	t.Helper()
	status, text := f.Ask(t, method, path, body, headers...)
	if status != 200 {
		t.Fatalf("%s %s %s: %d: %s", method, path, body, status, text)
	}
	return servertest.Decode[T](t, text)
}

// The descriptions of a model have what clients of Ollama read: see api/types.go of its source.
func TestShow(t *testing.T) {
	f := serve(t, nil)
	short := response[showJSON](t, f, "POST", "/api/show", `{"model":"talk"}`)
	if short.Tensors != nil || short.ModifiedAt.IsZero() || short.Details.Context != 512 ||
		short.Details.Embedding != 192 ||
		!slices.Equal(short.Capabilities, []string{"completion", "tools", "thinking"}) {
		t.Errorf("show: %+v", short)
	}
	verbose := response[showJSON](t, f, "POST", "/api/show", `{"name":"talk","verbose":true}`)
	for key, want := range map[string]any{
		"general.architecture": "llama", "general.parameter_count": 1796160.0, "llama.context_length": 512.0,
		"llama.embedding_length": 192.0, "llama.block_count": 5.0, "llama.attention.head_count": 6.0,
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.bos_token_id": 1022.0,
	} {
		if short.ModelInfo[key] != want || verbose.ModelInfo[key] != want {
			t.Errorf("%s is %v, and %v with verbose, want %v", key, short.ModelInfo[key], verbose.ModelInfo[key], want)
		}
	}
	for _, key := range []string{"tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"} {
		list, ok := short.ModelInfo[key].([]any)
		if all, _ := verbose.ModelInfo[key].([]any); !ok || len(list) != 0 || len(all) < 500 {
			t.Errorf("%s has %d elements, and %d with verbose", key, len(list), len(all))
		}
	}
	for _, key := range []string{"general.name", "tokenizer.chat_template"} {
		if verbose.ModelInfo[key] != nil {
			t.Errorf("%s is there", key)
		}
	}
	i := slices.IndexFunc(verbose.Tensors, func(x tensorJSON) bool { return x.Name == "model.norm.weight" })
	if i < 0 || verbose.Tensors[i].Type != "BF16" || !slices.Equal(verbose.Tensors[i].Shape, []int64{192}) {
		t.Errorf("tensors: %+v", verbose.Tensors)
	}
	f.Has(t, "POST", "/api/create", `{"model":"small","from":"talk","quantize":"int4","requires":"0.1.0","stream":false}`,
		200)
	small := response[showJSON](t, f, "POST", "/api/show", `{"model":"small","verbose":true}`)
	if !slices.ContainsFunc(small.Tensors, func(x tensorJSON) bool { return x.Type == "int4" }) ||
		small.Requires != "0.1.0" || small.Details.ParentModel != "talk:latest" {
		t.Errorf("quantized: %+v", small)
	}
	changed := response[showJSON](t, f, "POST", "/api/show",
		`{"model":"talk","system":"loud","template":"x","options":{"temperature":0.5,"stop":["a","b"]}}`)
	if changed.System != "loud" || !strings.Contains(changed.Modelfile, "SYSTEM loud") ||
		!strings.Contains(changed.Modelfile, "PARAMETER temperature 0.5") ||
		strings.Count(changed.Modelfile, "PARAMETER stop") != 2 || changed.Parameters != short.Parameters {
		t.Errorf("with changes: %q, %s", changed.System, changed.Modelfile)
	}
	f.Has(t, "POST", "/api/show", `{"model":"talk","options":{"stop":{}}}`, 400, "options.stop")
	f.Has(t, "POST", "/api/show", `{}`, 400, `{"error":"model is required"}`)
	f.Has(t, "POST", "/api/show", `{"model":"nope"}`, 404, `{"error":"model 'nope' not found"}`)
	f.Has(t, "POST", "/api/show", `{"model":"tolk"}`, 404, `model 'tolk' not found; similar names: talk:latest`)
	copilot := response[showJSON](t, f, "POST", "/api/show", `{"model":"Talk"}`, "User-Agent", "GitHubCopilotChat/0.47.0")
	if copilot.ModelInfo["general.basename"] != "Talk" {
		t.Errorf("Copilot's name: %v", copilot.ModelInfo["general.basename"])
	}
}

// A model that GGUF cannot express has what its configuration says.
func TestShowBeyondGGUF(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/api/create", `{"model":"odd","stream":false,"files":`+f.upload(t, "youtu-published")+`}`, 200)
	got := response[showJSON](t, f, "POST", "/api/show", `{"model":"odd"}`)
	of, _ := got.ModelInfo["general.architecture"].(string)
	if of == "" || got.ModelInfo[of+".context_length"] == nil || got.ModelInfo[of+".embedding_length"] == nil {
		t.Errorf("%v", got.ModelInfo)
	}
}

// Capabilities have Ollama's names, in both descriptions.
func TestCapabilitiesInDescriptions(t *testing.T) {
	f := serve(t, nil)
	servertest.Create(t, f.Options().Store, "filler", modelfile.Command{Name: modelfile.Template,
		Value: "{{ if .Suffix }}<pre>{{ .Prompt }}<suf>{{ .Suffix }}{{ else }}{{ .Prompt }}{{ end }}"})
	servertest.Create(t, f.Options().Store, "thinker", modelfile.Command{Name: modelfile.Template,
		Value: "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking %}<think>{% endif %}"})
	servertest.CreateInfill(t, f.Options().Store, "coder")
	want := map[string][]string{
		"coder:latest": {"completion", "insert"},
		"plain:latest": {"completion"}, "talk:latest": {"completion", "tools", "thinking"},
		"filler:latest":  {"completion", "insert"},
		"thinker:latest": {"completion", "thinking"},
	}
	list := response[tagsJSON](t, f, "GET", "/api/tags", "").Models
	if len(list) != len(want) {
		t.Errorf("%d models", len(list))
	}
	for _, m := range list {
		shown := response[showJSON](t, f, "POST", "/api/show", `{"model":"`+m.Name+`"}`)
		if !slices.Equal(m.Capabilities, want[m.Name]) || !slices.Equal(shown.Capabilities, want[m.Name]) {
			t.Errorf("%s: %q in tags and %q in show, want %q", m.Name, m.Capabilities, shown.Capabilities, want[m.Name])
		}
		if m.Details.Context != 512 || m.Details.Embedding != 192 || fmt.Sprint(m.Details) != fmt.Sprint(shown.Details) {
			t.Errorf("%s: %+v and %+v", m.Name, m.Details, shown.Details)
		}
	}
}

// A model that only computes embeddings says so in Ollama's words.
func TestEmbeddingModel(t *testing.T) {
	f := serve(t, nil)
	config, err := os.ReadFile(filepath.Join(servertest.Root(t), "testdata", "models", "demo", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(config), "LlamaForCausalLM", "LlamaModel", 1)
	d := digest.FromString(text).String()
	f.Has(t, "POST", "/api/blobs/"+d, text, 201)
	files := strings.Replace(f.upload(t, "demo"), digest.FromBytes(config).String(), d, 1)
	f.Has(t, "POST", "/api/create", `{"model":"embedder","stream":false,"files":`+files+`}`, 200)
	f.Has(t, "POST", "/api/show", `{"model":"embedder"}`, 200, `"capabilities":["embedding"]`)
	f.Has(t, "POST", "/api/embed", `{"model":"embedder","input":"x"}`, 200)
	f.Has(t, "POST", "/api/chat", `{"model":"embedder","messages":[{"role":"user","content":"x"}]}`, 400,
		`{"error":"\"embedder\" does not support chat: `)
	f.Has(t, "POST", "/api/generate", `{"model":"embedder","prompt":"x"}`, 400, `\"embedder\" does not support generate: `)
	f.Has(t, "POST", "/api/generate", `{"model":"embedder"}`, 200, `"done_reason":"load"`)
}

// The model that was changed last comes first.
func TestOrderOfTags(t *testing.T) {
	at := func(name string, minute int) tagJSON {
		return tagJSON{Name: name, ModifiedAt: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
	}
	list := []tagJSON{at("a", 1), at("b", 5), at("c", 1), at("d", 9), {Name: "e"}}
	newestFirst(list)
	got := ""
	for _, m := range list {
		got += m.Name
	}
	if got != "dbace" {
		t.Errorf("order %s", got)
	}
}

func TestStatus(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "GET", "/api/status", "", 200, `{"cloud":{"disabled":true,"source":"config"}}`)
	for _, path := range []string{"/api/status", "/api/tags", "/api/version", "/"} {
		f.Has(t, "HEAD", path, "", 200)
	}
}

// A name finds a model in any case, with its tag or without. A new name takes the case of one that is there. Of two
// that differ in case only, the exact one is meant.
func TestNamesInAnyCase(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/api/copy", `{"source":"PLAIN","destination":"Team/Model:V1"}`, 200)
	for _, name := range []string{"Team/Model:V1", "team/model:v1", "TEAM/MODEL:v1", "talk", "Talk:LATEST", "TALK"} {
		f.Has(t, "POST", "/api/show", `{"model":"`+name+`"}`, 200)
		f.Has(t, "POST", "/api/generate", `{"model":"`+name+`","prompt":"x","stream":false}`, 200, `"model":"`+name+`"`)
		f.Has(t, "POST", "/api/chat", `{"model":"`+name+`","messages":[{"role":"user","content":"x"}]}`, 200)
		f.Has(t, "POST", "/api/embed", `{"model":"`+name+`","input":"x"}`, 200)
		f.Has(t, "GET", "/api/layers?model="+name, "", 200)
		f.Has(t, "POST", "/api/generate", `{"model":"`+name+`","keep_alive":0}`, 200, `"done_reason":"unload"`)
	}
	f.Has(t, "POST", "/api/show", `{"model":"team/model"}`, 404, "model 'team/model' not found")
	f.Has(t, "POST", "/api/copy", `{"source":"plain","destination":"team/MODEL:v2"}`, 200)
	f.Has(t, "POST", "/api/create", `{"model":"PLAIN","from":"Team/model:v1","stream":false}`, 200)
	names := map[string]bool{}
	for _, m := range response[tagsJSON](t, f, "GET", "/api/tags", "").Models {
		names[m.Name] = true
	}
	want := []string{"Team/Model:V1", "Team/Model:v2", "plain:latest", "talk:latest"}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	servertest.Create(t, f.Options().Store, "Plain", modelfile.Command{Name: modelfile.System, Value: "upper"})
	for name, system := range map[string]string{"Plain": "upper", "plain": ""} {
		if got := response[showJSON](t, f, "POST", "/api/show", `{"model":"`+name+`"}`).System; got != system {
			t.Errorf("%s: system %q", name, got)
		}
	}
	f.Has(t, "DELETE", "/api/delete", `{"model":"TEAM/model:v1"}`, 200)
	f.Has(t, "DELETE", "/api/delete", `{"model":"TEAM/model:v1"}`, 404, "model 'TEAM/model:v1' not found")
}

// Each call has an id of its own, and an index that counts over the stream.
func TestCallIDs(t *testing.T) {
	f := serve(t, nil)
	call := `<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`
	f.Says = []string{"ok " + call, "\n" + call, "\n" + call + call}
	for _, stream := range []string{"true", "false"} {
		_, text := f.Ask(t, "POST", "/api/chat", `{"model":"talk","stream":`+stream+`,"messages":[{"role":"user",`+
			`"content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`)
		ids := map[string]bool{}
		var indices []int
		for line := range strings.Lines(text) {
			for _, c := range servertest.Decode[chatJSON](t, line).Message.Calls {
				indices = append(indices, c.Function.Index)
				if rest, ok := strings.CutPrefix(c.ID, "call_"); !ok || len(rest) != 8 || rest != strings.ToLower(rest) {
					t.Errorf("id %q", c.ID)
				}
				ids[c.ID] = true
			}
		}
		if len(ids) != 4 || !slices.Equal(indices, []int{0, 1, 2, 3}) {
			t.Errorf("stream %s: ids %v, indices %v", stream, ids, indices)
		}
	}
}

// A request can ask for the prompt instead of a response.
func TestRenderOnly(t *testing.T) {
	f := serve(t, nil)
	chat := response[chatJSON](t, f, "POST", "/api/chat",
		`{"model":"talk","_debug_render_only":true,"messages":[{"role":"user","content":"Hi"}]}`)
	generate := response[generateJSON](t, f, "POST", "/api/generate",
		`{"model":"talk","_debug_render_only":true,"prompt":"Hi"}`)
	for _, got := range []*debugJSON{chat.Debug, generate.Debug} {
		if got == nil || !strings.Contains(got.Rendered, "system:brief|user:Hi|think=-") || got.Images != 0 {
			t.Errorf("%+v", got)
		}
	}
	if len(f.Loads) > 0 {
		t.Error("the model is loaded")
	}
}

// The cache of facts begins anew when it is full.
func TestFactsCache(t *testing.T) {
	f := serve(t, nil)
	entry, err := f.Find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.Options().Store.Listing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := &f.api.facts
	for i := range maxFacts + 3 {
		e := *entry.Entry
		e.Digest = digest.FromString(fmt.Sprint(i))
		if _, err := k.get(t.Context(), list, &e, false); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.of) != 3 {
		t.Errorf("%d images are cached", len(k.of))
	}
}
