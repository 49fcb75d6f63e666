package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

func TestChoices(t *testing.T) {
	f := serve(t, nil)
	status, text := f.Ask(t, "POST", "/v1/chat/completions", hi+`,"n":3,"seed":5}`)
	response := servertest.Decode[chatCompletionJSON](t, text)
	if status != 200 || len(response.Choices) != 3 || response.Usage.Completion != 6 {
		t.Fatalf("%d: %s", status, text)
	}
	for i, c := range response.Choices {
		if c.Index != i || *c.Message.Content != "Hello world" || *c.Finish != "stop" {
			t.Errorf("choice %d: %s", i, text)
		}
	}
	var seeds []int64
	for _, r := range f.Parrot.Requests {
		seeds = append(seeds, *r.Sampling.Seed)
	}
	if slices.Sort(seeds); !slices.Equal(seeds, []int64{5, 6, 7}) ||
		response.Usage.Prompt != len(f.Parrot.Last(t).Prompt) {
		t.Errorf("seeds %v, usage %+v", seeds, response.Usage)
	}
	_, text = f.Ask(t, "POST", "/v1/chat/completions", hi+`,"n":2,"stream":true}`)
	content := map[int]string{}
	for _, e := range servertest.Events(t, text) {
		if e.Data == "[DONE]" {
			break
		}
		c := servertest.Decode[chatCompletionJSON](t, e.Data).Choices[0]
		if c.Delta.Content != nil {
			content[c.Index] += *c.Delta.Content
		}
	}
	if len(content) != 2 || content[0] != "Hello world" || content[1] != "Hello world" {
		t.Errorf("%v\n%s", content, text)
	}
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"n":2,"max_tokens":13}`, 500, `"type":"server_error"`, "out of range")
	f.Has(t, "POST", "/v1/chat/completions", hi+`}`, 200)
}

func TestCompletions(t *testing.T) {
	f := serve(t, nil)
	status, text := f.Ask(t, "POST", "/v1/completions", `{"model":"talk","prompt":"Once","max_tokens":5,"echo":true}`)
	response := servertest.Decode[textCompletionJSON](t, text)
	if status != 200 || response.Object != "text_completion" || len(response.Choices) != 1 ||
		response.Choices[0].Text != "OnceHello world" || *response.Choices[0].Finish != "stop" ||
		response.Usage.Completion != 2 {
		t.Fatalf("%d: %s", status, text)
	}
	once := f.Parrot.Last(t)
	if m, err := f.Find(t.Context(), "talk"); err != nil {
		t.Fatal(err)
	} else if want, err := m.Encode(t.Context(), "Once"); err != nil || !slices.Equal(once.Prompt, want) ||
		once.MaxTokens != 5 ||
		once.Special {
		t.Errorf("request %+v, want the prompt %v, %v", once, want, err)
	}
	status, text = f.Ask(t, "POST", "/v1/completions", `{"model":"plain","prompt":[[5,6],[7]],"n":2,"logprobs":1}`)
	response = servertest.Decode[textCompletionJSON](t, text)
	if status != 200 || len(response.Choices) != 4 || response.Usage.Prompt != 3 || response.Usage.Completion != 8 {
		t.Fatalf("%d: %s", status, text)
	}
	for i, c := range response.Choices {
		l := c.LogProbs
		if c.Index != i || l == nil || len(l.Tokens) != 2 || len(l.LogProbs) != 2 || len(l.Top) != 2 ||
			!slices.IsSorted(l.Offsets) || *l.LogProbs[0] != -1 {
			t.Errorf("choice %d: %+v", i, c)
		}
	}
	for _, body := range []string{`"prompt":["a","b"],"stream":true`,
		`"prompt":["a","b"],"stream":true,"echo":true,"stream_options":{"include_usage":true}`} {
		_, text = f.Ask(t, "POST", "/v1/completions", `{"model":"plain",`+body+`}`)
		texts := map[int]string{}
		list := servertest.Events(t, text)
		for _, e := range list[:len(list)-1] {
			for _, c := range servertest.Decode[textCompletionJSON](t, e.Data).Choices {
				texts[c.Index] += c.Text
			}
		}
		want := map[int]string{0: "Hello world", 1: "Hello world"}
		if strings.Contains(body, "echo") {
			want = map[int]string{0: "aHello world", 1: "bHello world"}
		}
		if fmt.Sprint(texts) != fmt.Sprint(want) || list[len(list)-1].Data != "[DONE]" ||
			strings.Contains(text, `"usage"`) != strings.Contains(body, "usage") {
			t.Errorf("%s: %v\n%s", body, texts, text)
		}
	}
	for body, want := range map[string]string{
		`"prompt":"x","suffix":"y"`:                    `"param":"suffix"`,
		`"prompt":"x","best_of":2`:                     `"param":"best_of"`,
		`"prompt":"x","logprobs":-1`:                   `"param":"logprobs"`,
		`"prompt":[]`:                                  `"param":"prompt"`,
		`"n":1`:                                        `"param":"prompt"`,
		`"prompt":{"a":1}`:                             "prompt",
		`"prompt":[["a"]]`:                             "prompt[0][0]: a JSON string, want an integer",
		`"prompt":["x",1]`:                             "prompt[1]: a JSON number 1, want a string or an array of token ids",
		`"prompt":["a","b"],"n":100`:                   `"param":"prompt"`,
		`"prompt":[-1],"echo":true`:                    "negative",
		`"prompt":"x","logit_bias":{"word":1}`:         "logit_bias",
		`"prompt":"` + strings.Repeat("a ", 600) + `"`: "context_length_exceeded",
	} {
		f.Has(t, "POST", "/v1/completions", `{"model":"plain",`+body+`}`, 400, `"type":"invalid_request_error"`, want)
	}
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","prompt":"x","suffix":null,"best_of":1,"user":"u"}`, 200)
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","prompt":"x","suffix":"y","echo":true,"logprobs":1}`, 400,
		`"param":"logprobs"`)
}

func TestModels(t *testing.T) {
	f := serve(t, nil)
	servertest.Create(t, f.Options().Store, "registry.example/team/deep/model:v1")
	_, text := f.Ask(t, "GET", "/v1/models", "")
	list := servertest.Decode[openAIModels](t, text)
	if list.Object != "list" || len(list.Data) != 3 {
		t.Fatal(text)
	}
	for _, m := range list.Data {
		if m.Object != "model" || m.Created == 0 || m.OwnedBy == "" || m.Context != 512 {
			t.Errorf("%+v", m)
		}
		f.Has(t, "GET", "/v1/models/"+m.ID, "", 200, `"id":"`+m.ID+`"`, `"object":"model"`,
			fmt.Sprintf(`"created":%d`, m.Created))
	}
	f.Has(t, "GET", "/v1/models/talk", "", 200, `"id":"talk"`)
	f.Has(t, "GET", "/v1/models/talk:latest", "", 200, `"id":"talk:latest"`)
	f.Has(t, "GET", "/v1/models/none", "", 404, `"code":"model_not_found"`)
	f.Has(t, "GET", "/v1/models/..%2f..%2fetc%2fpasswd", "", 400, `"type":"invalid_request_error"`)
}

// Errors have the form of the API that the path belongs to.
func TestDialects(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.MaxBody = 1000 })
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/nothing", "", 404},
		{"GET", "/v1/chat/completions", "", 405},
		{"POST", "/v1/completions", `{"prompt":"` + long + `"}`, 413},
		{"POST", "/v1/chat/completions", "{", 400},
		{"POST", "/v1/completions", `{"model":"none","prompt":"x"}`, 404},
		{"POST", "/v1/completions", `{"model":"plain","prompt":"x","max_tokens":13}`, 500},
	} {
		status, text := f.Ask(t, c.method, c.path, c.body)
		if e := servertest.Decode[openAIFailure](t, text).Error; status != c.status || e.Message == "" || e.Type == "" ||
			!strings.Contains(text, `"param":`) || !strings.Contains(text, `"code":`) {
			t.Errorf("%s %s: %d: %s", c.method, c.path, status, text)
		}
	}
	f.Has(t, "GET", "/nothing", "", 404, `{"error":"/nothing not found`)
	if status, text := f.Ask(t, "GET", "/v1/models", "", "Host", "evil.example"); status != 403 ||
		!strings.Contains(text, `"message":`) {
		t.Errorf("%d: %s", status, text)
	}
	locked := serve(t, func(o *server.Options) { o.APIKey = "secret" })
	locked.Has(t, "GET", "/v1/models", "", 401, `"code":"invalid_api_key"`)
	if status, text := locked.Ask(t, "GET", "/v1/models", "", "Authorization", "Bearer secret"); status != 200 {
		t.Errorf("%d: %s", status, text)
	}
	for name, c := range map[string]struct {
		fail   error
		status int
		want   string
	}{
		"busy": {fmt.Errorf("512 requests wait: %w", runtime.ErrBusy), 503, "server_error"},
		"died": {fmt.Errorf("%w: signal: killed", runner.ErrDied), 500, "server_error"},
		"room": {fmt.Errorf("no room: %w", runtime.ErrMemory), 400, "context_length_exceeded"},
		"else": {errors.New("a kernel is missing"), 500, "server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			f.Says, f.Fail = nil, c.fail
			f.Has(t, "POST", "/v1/chat/completions", hi+`,"stream":true}`, c.status, c.want)
			_ = f.Parrot.Close()
			f.Says = []string{"Hello"}
			status, text := f.Ask(t, "POST", "/v1/chat/completions", hi+`,"stream":true}`)
			list := servertest.Events(t, text)
			if e := servertest.Decode[openAIFailure](t, list[len(list)-1].Data).Error; status != 200 || len(list) != 3 ||
				e.Message == "" ||
				!strings.Contains(text, c.want) {
				t.Errorf("error after the start: %d: %s", status, text)
			}
			_, text = f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","stream":true}`)
			list = servertest.Events(t, text)
			if last := list[len(list)-1]; last.Name != "response.failed" || !strings.Contains(last.Data, `"status":"failed"`) ||
				!strings.Contains(last.Data, `"error":{"code":"`+c.want) {
				t.Errorf("error after the start of a response: %s", text)
			}
		})
	}
}
