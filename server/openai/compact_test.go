package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/servertest"
)

const longTalk = `{"role":"user","content":"Fix it."},{"role":"assistant","content":"Done."},` +
	`{"role":"User","content":"Thanks."}`

func TestCompact(t *testing.T) {
	f := serve(t, nil)
	f.Says = []string{"<think>\nhm", "</think>\n", "It was fixed."}
	status, text := f.Ask(t, "POST", "/v1/responses/compact", `{"model":"talk","input":[`+longTalk+`],"instructions":"i"}`)
	c := servertest.Decode[compactJSON](t, text)
	if status != 200 || c.Object != "response.compaction" || len(c.Output) != 3 || c.Usage.Output == 0 {
		t.Fatalf("%d: %s", status, text)
	}
	if got := f.Prompt(t); !strings.HasPrefix(got, "system:i|user:Fix it.|assistant:Done.|user:Thanks.|user:Stop here") {
		t.Errorf("prompt %q", got)
	}
	// The output is the input of what follows.
	output, err := json.Marshal(append(c.Output, json.RawMessage(`{"role":"user","content":"And?"}`)))
	if err != nil {
		t.Fatal(err)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":`+string(output)+`}`, 200)
	if got := f.Prompt(t); got != "system:brief|user:Fix it.|user:Thanks.|user:Summary of the conversation so far:\n\n"+
		"It was fixed.|user:And?|think=-" {
		t.Errorf("prompt %q", got)
	}

	// Codex asks for a summary in this way, and wants one item.
	body := `{"model":"talk","input":[` + longTalk + `,{"type":"compaction_trigger"}],"tools":[` + flatF + `]`
	summary := `"type":"compaction","encrypted_content":"ingot:summary:It was fixed."}`
	f.Has(t, "POST", "/v1/responses", body+"}", 200, summary, `"status":"completed"`)
	if got := f.Prompt(t); !strings.Contains(got, "T=f") { // as in the requests before it
		t.Errorf("prompt %q", got)
	}
	_, text = f.Ask(t, "POST", "/v1/responses", body+`,"stream":true}`)
	var names []string
	for _, e := range servertest.Events(t, text) {
		names = append(names, strings.TrimPrefix(e.Name, "response."))
	}
	want := []string{"created", "in_progress", "output_item.added", "output_item.done", "completed"}
	if !slices.Equal(names, want) || !strings.Contains(text, summary) {
		t.Errorf("%q: %s", names, text)
	}
}

// A model that calls a tool instead of writing a summary is asked again, without tools.
func TestNoSummary(t *testing.T) {
	body := `{"model":"talk","input":[` + longTalk + `,{"type":"compaction_trigger"}],"tools":[` + flatF + `]}`
	for _, path := range []string{"/v1/responses", "/v1/responses/compact"} {
		f := serve(t, nil)
		f.Says = called("f", "{}")
		f.Has(t, "POST", path, body, 200)
		if got := f.Prompt(t); len(f.Parrot.Requests) != 2 || strings.Contains(got, "T=f") {
			t.Errorf("%s: %d requests, prompt %q", path, len(f.Parrot.Requests), got)
		}
		f = serve(t, nil)
		f.Says = []string{"<think>\nhm\n</think>\n"}
		f.Has(t, "POST", path, body, 500, "wrote no summary")
	}
}

// With truncation auto, the oldest messages give way; the system message and the newest one stay.
func TestTruncation(t *testing.T) {
	f := serve(t, nil)
	var list []string
	for _, word := range []string{"one", "two", "three", "four"} {
		list = append(list, `{"role":"user","content":"`+word+strings.Repeat(" word", 150)+`"}`,
			`{"role":"assistant","content":"yes `+word+`"}`)
	}
	body := `{"model":"talk","instructions":"i","input":[` + strings.Join(list, ",") + `,{"role":"user","content":"five"}]`
	for _, more := range []string{"", `,"truncation":"disabled"`, `,"truncation":null`} {
		f.Has(t, "POST", "/v1/responses", body+more+"}", 400, "context_length_exceeded")
	}
	for most, want := range map[string]string{"": "yes two", `,"max_output_tokens":9`: "yes one"} {
		f.Has(t, "POST", "/v1/responses", body+most+`,"truncation":"auto"}`, 200, `"truncation":"auto"`)
		got := f.Prompt(t)
		if !strings.HasPrefix(got, "system:i|") || !strings.HasSuffix(got, "|user:five|think=-") ||
			strings.Contains(got, want) || !strings.Contains(got, "yes four") {
			t.Errorf("prompt %q", got)
		}
	}
	f.Has(t, "POST", "/v1/responses/input_tokens", body+`,"truncation":"auto"}`, 200, `"object":"response.input_tokens"`)
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","truncation":"auto","input":"`+strings.Repeat(" word", 700)+`"}`,
		400, "context_length_exceeded")
}

func TestInputTokens(t *testing.T) {
	f := serve(t, nil)
	count := func(more string) int {
		t.Helper()
		status, text := f.Ask(t, "POST", "/v1/responses/input_tokens", `{"model":"talk",`+more+`}`)
		if status != 200 {
			t.Fatalf("%d: %s", status, text)
		}
		return servertest.Decode[inputCountJSON](t, text).Tokens
	}
	short, tools := count(`"input":"Hi"`), count(`"input":"Hi","tools":[`+flatF+`]`)
	if len(f.Loads) != 0 {
		t.Error("the model is loaded")
	}
	_, text := f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi"}`)
	if used := servertest.Decode[responseJSON](t, text).Usage.Input; short != used || tools <= short {
		t.Errorf("%d tokens are counted, %d with a tool, %d are used", short, tools, used)
	}
	f.Has(t, "POST", "/v1/responses/input_tokens", `{"model":"talk","input":"Hi","tool_choice":"required"}`, 400,
		"tool_choice")
}
