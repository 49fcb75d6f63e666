package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

func TestGenerate(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Draft = runtime.Draft{Mode: runtime.DraftOff} })
	status, text := f.Ask(t, "POST", "/api/generate",
		`{"model":"plain","prompt":"Once","options":{"temperature":0,"stop":"x","num_predict":7,"seed":5,"num_gpu":1}}`)
	list := servertest.Lines(t, text)
	if status != 200 || len(list) != 3 || list[0]["response"] != "Hello" || list[1]["response"] != " world" ||
		list[0]["done"] != false {
		t.Fatalf("%d: %s", status, text)
	}
	end := list[2]
	if end["done"] != true || end["done_reason"] != "stop" || end["response"] != "" || end["model"] != "plain" ||
		end["eval_count"] != 2.0 ||
		end["prompt_eval_count"] != 2.0 || end["prompt_eval_duration"] != 3e9 || end["eval_duration"] != 1e9 ||
		end["total_duration"].(float64) <= 0 {
		t.Errorf("last message: %v", end)
	}
	if ids := end["context"].([]any); len(ids) != 4 || ids[2] != 0.0 || ids[3] != 1.0 {
		t.Errorf("context: %v", ids)
	}
	r := f.Parrot.Last(t)
	if r.Sampling.Temperature != 0 || r.Sampling.TopP != 0.9 || r.MaxTokens != 7 || *r.Sampling.Seed != 5 ||
		!slices.Equal(r.Stop, []string{"x"}) || r.Special {
		t.Errorf("request: %+v", r)
	}
	prompt := r.Prompt
	if r.Draft != (runtime.Draft{Mode: runtime.DraftOff}) {
		t.Errorf("draft: %+v", r.Draft)
	}

	status, text = f.Ask(t, "POST", "/api/generate",
		`{"model":"plain","prompt":"Once","stream":false,"ids":true,"context":[5,6]}`)
	if list = servertest.Lines(t, text); status != 200 || len(list) != 1 || list[0]["response"] != "Hello world" ||
		fmt.Sprint(list[0]["ids"]) != "[0 1]" {
		t.Errorf("%d: %s", status, text)
	}
	if got := f.Parrot.Last(t); !slices.Equal(got.Prompt, slices.Concat([]int32{5, 6}, prompt[1:])) ||
		got.Sampling.Temperature != 0.7 || got.MaxTokens != 0 {
		t.Errorf("request with a context: %+v", got)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"talk","prompt":"Once","stream":false}`, 200, `"response":"Hello world"`)
	if got := f.Parrot.Last(t); !got.Special {
		t.Error("a request to a model with a parser does not ask for special tokens")
	}
	f.Has(t, "POST", "/api/generate", `{"model":"talk","prompt":"Once","raw":true,"stream":false}`, 200)
	if got := f.Parrot.Last(t); !slices.Equal(got.Prompt, prompt) {
		t.Errorf("raw: %v", got.Prompt)
	}
	for body, want := range map[string]string{
		``:               "no body",
		`{`:              "the JSON ends too early",
		`{"prompt":"x"}`: "model is required",
		`{"model":"plain","prompt":"x","system":"s"}`:                                   "which a system message requires",
		`{"model":"plain","prompt":"x","suffix":"y"}`:                                   "does not support insert",
		`{"model":"plain","prompt":"x","template":"{{ .Prompt"}`:                        "template",
		`{"model":"plain","prompt":"x","images":["AAAA"]}`:                              "vision",
		`{"model":"plain","prompt":"x","images":["!"]}`:                                 "not valid base64",
		`{"model":"plain","prompt":"x","keep_alive":"soon"}`:                            "keep_alive",
		`{"model":"plain","prompt":"a b c d","truncate":false,"options":{"num_ctx":2}}`: "the context length of 2",
		`{"model":"talk","prompt":"x","raw":true,"system":"s"}`:                         "raw excludes",
		`{"model":"../../etc/passwd","prompt":"x"}`:                                     "model name",
	} {
		f.Has(t, "POST", "/api/generate", body, 400, `{"error":"`, want)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"none","prompt":"x"}`, 404, `{"error":"model 'none' not found"}`)
}

func TestChat(t *testing.T) {
	f := serve(t, nil)
	f.Says = []string{"<think>\nhm", "</think>\n", "It is",
		` so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
	body := `{"model":"talk","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"",` +
		`"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},` +
		`{"role":"tool","tool_name":"f","content":"2"}],"tools":[{"type":"function","function":{"name":"f",` +
		`"parameters":{"type":"object"}}}],"think":false}`
	status, text := f.Ask(t, "POST", "/api/chat", body)
	var content, thought string
	var calls []any
	list := servertest.Lines(t, text)
	for _, m := range list {
		message := m["message"].(map[string]any)
		content += message["content"].(string)
		if s, ok := message["thinking"].(string); ok {
			thought += s
		}
		if c, ok := message["tool_calls"].([]any); ok {
			calls = append(calls, c...)
		}
	}
	if status != 200 || strings.TrimSpace(content) != "It is so." || thought != "hm" || len(calls) != 1 {
		t.Fatalf("%d: content %q, thinking %q, calls %v\n%s", status, content, thought, calls, text)
	}
	fn := calls[0].(map[string]any)["function"].(map[string]any)
	if fn["name"] != "f" || fmt.Sprint(fn["arguments"]) != "map[x:1]" {
		t.Errorf("call: %v", fn)
	}
	if end := list[len(list)-1]; end["done"] != true || end["done_reason"] != "stop" {
		t.Errorf("last message: %v", end)
	}
	m, err := f.Find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.EncodeRendered(t.Context(), "system:brief|user:Hi|assistant:"+
		"{\"name\": \"f\", \"arguments\": {\"x\": 1}}|tool:2|T=f|think=False", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Parrot.Last(t).Prompt; !slices.Equal(got, want) {
		t.Errorf("prompt %v, want %v", got, want)
	}
	f.Has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"system","content":"other"},{"role":"user","content":"Hi"}],"stream":false}`,
		200,
		`"content":"It is so.<tool_call>{\"name\"`, // no tools, so no call
		`"role":"assistant"`, `"thinking":"hm"`, `"done":true`, `"stats":{`)
	f.Has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":{"type":"object"},"stream":false,`+
			`"logprobs":true,"top_logprobs":2}`, 200,
		`"logprobs":[{"token":"`)
	if got := f.Parrot.Last(t); got.Format != (runtime.Format{Kind: runtime.FormatSchema, Source: `{"type":"object"}`}) ||
		!got.LogProbs || got.TopLogProbs != 2 {
		t.Errorf("request with a format: %+v", got)
	}
	f.Parrot.LeftOut = []string{"/not: not enforced"}
	for path, body := range map[string]string{
		"/api/chat":     `{"model":"talk","messages":[{"role":"user","content":"x"}]`,
		"/api/generate": `{"model":"talk","prompt":"x"`,
	} {
		f.Has(t, "POST", path, body+`,"format":{},"strict_schema":true,"best_effort":true}`, 200,
			`"left_out":["/not: not enforced"]`)
		want := runtime.Format{Kind: runtime.FormatSchema, Source: `{}`, StrictSchema: true, BestEffort: true}
		if got := f.Parrot.Last(t).Format; got != want {
			t.Errorf("%s: format %+v", path, got)
		}
	}
	f.Has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":"json","stream":false}`, 200)
	if got := f.Parrot.Last(t); got.Format.Kind != runtime.FormatJSON || got.Format.Source != "" {
		t.Errorf("request with a format: %+v", got)
	}
	f.Has(t, "POST", "/api/chat",
		`{"model":"plain","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"stream":false}`, 200)
	for body, want := range map[string]string{
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":"xml"}`:                   "bad format",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":7}`:                       "bad format",
		`{"model":"plain","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"}]}`: "a system message",
		`{"model":"talk","messages":[{"content":"x"}]}`:                                                "[0].role: missing",
		`{"model":"talk","messages":[{"role":"user","content":"x","images":["AAAA"]}]}`:                "vision",
		`{"model":"talk","messages":"x"}`:                                                              "messages",
	} {
		f.Has(t, "POST", "/api/chat", body, 400, want)
	}
}

// Responses repeat the model's name as the request spells it, and /api/ps has the full one.
func TestNamesInResponses(t *testing.T) {
	f := serve(t, nil)
	for _, name := range []string{"talk", "talk:latest"} {
		echoed := `"model":"` + name + `"`
		f.Has(t, "POST", "/api/generate", `{"model":"`+name+`"}`, 200, echoed)
		f.Has(t, "POST", "/api/generate", `{"model":"`+name+`","prompt":"x"}`, 200, echoed)
		f.Has(t, "POST", "/api/chat", `{"model":"`+name+`","messages":[{"role":"user","content":"x"}]}`, 200, echoed)
		f.Has(t, "POST", "/api/embed", `{"model":"`+name+`","input":"x"}`, 200, echoed)
		f.Has(t, "GET", "/api/ps", "", 200, `"model":"talk:latest"`)
		f.Has(t, "POST", "/api/chat", `{"model":"`+name+`","messages":[],"keep_alive":0}`, 200, echoed)
	}
}

// gpuParrot is a model on a GPU.
type gpuParrot struct{ *servertest.Parrot }

func (gpuParrot) GPU() bool { return true }

// A model's memory is a GPU's only if the model computes on one.
func TestMemoryOfGPU(t *testing.T) {
	f := serve(t, func(o *server.Options) {
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			return gpuParrot{servertest.NewParrot("x")}, nil
		}
	})
	f.Has(t, "POST", "/api/generate", `{"model":"plain"}`, 200)
	_, text := f.Ask(t, "GET", "/api/ps", "")
	var got PsJSON
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Models) != 1 || got.Models[0].Size == 0 ||
		got.Models[0].SizeVRAM != got.Models[0].Size {
		t.Errorf("%v: %s", err, text)
	}
}

func TestLoadAndUnload(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/api/generate", `{"model":"plain"}`, 200, `"done":true`, `"done_reason":"load"`)
	f.Has(t, "GET", "/api/ps", "", 200, `"name":"plain:latest"`, `"loaded":1`, `"requests":0`, `"pid":4711`,
		`"context_length":512`, `"size_vram":0,`)
	if len(f.Loads) != 1 || !strings.HasPrefix(f.Loads[0].Name, "plain:latest@sha256:") || f.Loads[0].Memory <= 0 ||
		f.Loads[0].PrefixCache <= 0 {
		t.Errorf("loads: %+v", f.Loads)
	}
	f.Has(t, "POST", "/api/chat", `{"model":"plain","messages":[],"keep_alive":-1}`, 200, `"done_reason":"load"`)
	f.Has(t, "POST", "/api/chat", `{"model":"plain","messages":[{"role":"user","content":"x"}],"stream":false}`, 200)
	if len(f.Loads) != 1 {
		t.Errorf("the model was loaded %d times", len(f.Loads))
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","keep_alive":0}`, 200, `"done_reason":"unload"`)
	<-f.Parrot.Done()
	f.Has(t, "POST", "/api/generate", `{"model":"none","keep_alive":0}`, 404)

	// If a name refers to another model, the next request loads that.
	f.Has(t, "POST", "/api/generate", `{"model":"plain"}`, 200)
	old := f.Parrot
	servertest.Create(t, f.Options().Store, "plain", modelfile.Command{Name: modelfile.Parameter, Key: "temperature",
		Value: "0.1"})
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	<-old.Done()
	if got := f.Parrot.Last(t); got.Sampling.Temperature != 0.1 {
		t.Errorf("temperature of the new model: %v", got.Sampling.Temperature)
	}

	// A model whose process died is loaded again.
	_ = f.Parrot.Close()
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	if len(f.Loads) != 4 {
		t.Errorf("%d loads, want 4", len(f.Loads))
	}
}
