package server_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server"

	ingot "github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// speaker is a model whose output is always thinking, text and a call.
type speaker struct{ mute }

func (*speaker) Generate(_ context.Context, r ingot.Request) iter.Seq2[ingot.Event, error] {
	return func(yield func(ingot.Event, error) bool) {
		pieces := []string{"<think>hm", "</think>so", `<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
		for i, text := range pieces {
			e := ingot.Event{IDs: []int32{int32(i)}, Text: text, Stats: ingot.Stats{PromptTokens: len(r.Prompt), Tokens: i + 1}}
			if r.LogProbs {
				e.LogProbs = []ingot.LogProb{{ID: int32(i), LogProb: -1}}
			}
			if i == len(pieces)-1 {
				e.Done = ingot.DoneStop
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// fuzzAPI sends bodies to endpoints of one API, for models with a template, without one, and with pictures. isError
// reports whether a response is an error in the API's form.
func fuzzAPI(f *testing.F, paths, seeds []string, isError func(body []byte) bool) {
	s := serveMute(f, func(o *server.Options) {
		o.MaxBody = 64 << 10
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			return &speaker{mute{done: make(chan struct{})}}, nil
		}
		createSees(f, o.Store)
	})
	models := []string{"talk", "plain", "sees"}
	for i := range paths {
		for j := range models {
			for _, seed := range seeds {
				f.Add(uint8(i), uint8(j), seed)
			}
		}
	}
	f.Fuzz(func(t *testing.T, path, model uint8, body string) {
		if rest, ok := strings.CutPrefix(body, "{"); ok { // a later field of the same name wins
			comma := ","
			if strings.HasPrefix(strings.TrimSpace(rest), "}") {
				comma = ""
			}
			body = `{"model":"` + models[int(model)%len(models)] + `"` + comma + rest
		}
		w := httptest.NewRecorder()
		s.direct(w, "POST", paths[int(path)%len(paths)], body)
		response := w.Body.Bytes()
		switch {
		case w.Code >= 500:
			t.Errorf("status %d: %s\n%s", w.Code, response, body)
		case w.Code >= 400 && !isError(response):
			t.Errorf("status %d without an error in the API's form: %s\n%s", w.Code, response, body)
		case w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") &&
			!json.Valid(response):
			t.Errorf("the response is not JSON: %s\n%s", response, body)
		}
		release, free := s.HoldPrompts()
		if !free {
			t.Fatalf("prompt memory is not released after %s", body)
		}
		release()
	})
}

const fuzzTools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",` +
	`"properties":{"x":{"type":"integer"}}}}}]`

func FuzzOllamaChat(f *testing.F) {
	fuzzAPI(f, []string{"/api/chat", "/api/generate"}, []string{
		`{"messages":[{"role":"user","content":"x","images":["` + headOfPNG(64) + `"]}],"stream":false}`,
		`{"messages":[{"role":"system","content":"s"},{"role":"assistant","content":"",` +
			`"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","tool_name":"f","content":"1"}],` +
			fuzzTools + `,"think":"high"}`,
		`{"messages":[{"role":"user","content":"x"}],"format":{"type":"object"},"options":{"stop":["a"],"num_predict":3,` +
			`"num_ctx":20,"seed":-1},"keep_alive":"1m","logprobs":true,"top_logprobs":2}`,
		`{"prompt":"x","suffix":"y","system":"s","template":"{{ .System }}{{ range .Messages }}{{ .Content }}{{ end }}",` +
			`"stream":false,"context":[1,2]}`,
		`{"prompt":"see [img-0]","raw":true,"images":["` + headOfPNG(64) + `"]}`,
		`{"messages":[]}`, `{}`, `[]`,
	}, func(body []byte) bool {
		var e struct{ Error string }
		return json.Unmarshal(body, &e) == nil && e.Error != ""
	})
}

func FuzzOpenAIChat(f *testing.F) {
	fuzzAPI(f, []string{"/v1/chat/completions", "/v1/responses"}, []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,` + headOfPNG(64) + `"}}]}],"n":2}`,
		`{"messages":[{"role":"developer","content":"d"},{"role":"assistant","content":null,"tool_calls":[{"id":"1",` +
			`"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"1",` +
			`"content":"1"}],` + fuzzTools + `,"tool_choice":"required"}`,
		`{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},` +
			`"logprobs":true,"top_logprobs":1,"stop":"a","reasoning_effort":"low","chat_template_kwargs":{"a":[1]}}`,
		`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a",` +
			`"schema":{"type":"object"}}},"max_tokens":1,"seed":1}`,
		`{"input":"x","instructions":"i","stream":true,"reasoning":{"effort":"high"},` +
			`"text":{"format":{"type":"json_object"}}}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image",` +
			`"image_url":"data:image/png;base64,` + headOfPNG(64) + `"}]},{"type":"function_call","call_id":"1","name":"f",` +
			`"arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}],"tools":[{"type":"function",` +
			`"name":"f","parameters":{}}],"tool_choice":"auto"}`,
		`{"messages":[]}`, `{}`, `[]`,
	}, func(body []byte) bool {
		var e struct {
			Error struct{ Message, Type string }
		}
		return json.Unmarshal(body, &e) == nil && e.Error.Message != "" && e.Error.Type != ""
	})
}

func FuzzAnthropicMessages(f *testing.F) {
	fuzzAPI(f, []string{"/v1/messages", "/v1/messages/count_tokens"}, []string{
		`{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image",` +
			`"source":{"type":"base64","media_type":"image/png","data":"` + headOfPNG(64) + `"}}]}]}`,
		`{"max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use","id":"1","name":"f",` +
			`"input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",` +
			`"content":[{"type":"text","text":"1"}],"is_error":true}]}],"tools":[{"name":"f",` +
			`"input_schema":{"type":"object"}}]}`,
		`{"max_tokens":0,"messages":[{"role":"user","content":"x"}],"stream":true,"thinking":{"type":"enabled",` +
			`"budget_tokens":1024},"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"any",` +
			`"disable_parallel_tool_use":true}}`,
		`{"max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"so"}],` +
			`"stop_sequences":["a"],"temperature":0,"top_k":1,"top_p":0.5,"output_config":{"format":{"type":"json_schema",` +
			`"schema":{}},"effort":"low"}}`,
		`{"messages":[]}`, `{}`, `[]`,
	}, func(body []byte) bool {
		var e struct {
			Type  string
			Error struct{ Message, Type string }
		}
		return json.Unmarshal(body, &e) == nil && e.Type == "error" && e.Error.Message != "" && e.Error.Type != ""
	})
}
