package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/ollama"
)

// fakeServer responds with given lines and records the requests.
type fakeServer struct {
	path string
	body string
}

// asServer makes `ingot run` find a server of its store, with a model "talk" and a model "plain" without a template.
func asServer(t *testing.T, lines ...string) *fakeServer {
	t.Helper()
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "store"))
	demo := filepath.Join("..", "testdata", "models", "demo")
	file := filepath.Join(t.TempDir(), "Modelfile")
	if err := os.WriteFile(file,
		[]byte("FROM plain\nSYSTEM brief\nMESSAGE user a\nTEMPLATE \"{% if enable_thinking %}{% endif %}"+
			"{% for m in messages %}{{ m.content }}{% endfor %}\"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"create", "plain", demo}, {"create", "talk", "-f", file}} {
		if code, _, errs := runMain(args, ""); code != 0 {
			t.Fatal(errs)
		}
	}
	store, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case identity.Path:
			p, err := identity.Prove(store, r)
			if err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(p)
			return
		case "/api/version":
			_ = json.NewEncoder(w).Encode(ollama.VersionJSON{Version: "1", Ingot: "1", Store: identity.StoreID(store)})
			return
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		f.path, f.body = r.URL.Path, b.String()
		for _, line := range lines {
			if line == "die" {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			if status := 0; strings.HasPrefix(line, "status ") {
				_, _ = fmt.Sscanf(line, "status %d", &status)
				w.WriteHeader(status)
				continue
			}
			fmt.Fprintln(w, line)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("INGOT_HOST", s.URL)
	t.Setenv("INGOT_ENGINE", filepath.Join(t.TempDir(), "none")) // no model can be loaded in this process
	return f
}

func runMain(args []string, in string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(args, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

const lastLine = `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",` +
	`"stats":{"prompt_tokens":5,"cached_tokens":3,"tokens":2}}`

func TestRunAsksServer(t *testing.T) {
	f := asServer(t,
		`{"message":{"role":"assistant","content":"","thinking":"hm"},"ids":[7]}`,
		`{"message":{"role":"assistant","content":"Hi"},"ids":[8]}`,
		`{"message":{"role":"assistant","content":"","tool_calls":[{"id":"x","function":{"name":"f","arguments":{"a":1}}}]}}`,
		lastLine)
	code, out, errs := runMain([]string{"run", "talk", "Well?", "--json", "--think", "low", "--temperature", "0.5",
		"--stop", "X", "--max-tokens", "3", "--ignore-eos", "--format", "regex:a+"}, "text\n")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	type toolCall struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	type result struct {
		IDs        []int32      `json:"ids"`
		Text       string       `json:"text"`
		Thinking   string       `json:"thinking"`
		ToolCalls  []toolCall   `json:"tool_calls"`
		DoneReason string       `json:"done_reason"`
		LeftOut    []string     `json:"left_out"`
		Stats      server.Stats `json:"stats"`
	}
	var got result
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := result{IDs: []int32{7, 8}, Text: "Hi", Thinking: "hm",
		ToolCalls: []toolCall{{"x", "f", json.RawMessage(`{"a":1}`)}}, DoneReason: "stop",
		Stats: server.Stats{PromptTokens: 5, CachedTokens: 3, Tokens: 2}}
	for i := range got.ToolCalls {
		var b bytes.Buffer
		if err := json.Compact(&b, got.ToolCalls[i].Arguments); err != nil {
			t.Fatal(err)
		}
		got.ToolCalls[i].Arguments = b.Bytes()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result (- want, + got):\n%s", diff)
	}
	const body = `{"model":"talk:latest","messages":[{"role":"user","content":"text\n\nWell?"}],"think":"low",` +
		`"format":"regex:a+","options":{"ignore_eos":true,"num_predict":3,"stop":["X"],"temperature":0.5},"ids":true,` +
		`"truncate":false,"shift":false}`
	if f.path != "/api/chat" || f.body != body {
		t.Errorf("%s received %s", f.path, f.body)
	}

	code, out, errs = runMain([]string{"run", "talk", "Well?", "--system", "", "--verbose"}, "")
	if code != 0 || out != "Hi\n{\"id\":\"x\",\"name\":\"f\",\"arguments\":{\"a\":1}}\n" ||
		!strings.Contains(errs, "using the server at "+os.Getenv("INGOT_HOST")) ||
		!strings.Contains(errs, "thinking: hm\n") || !strings.Contains(errs, "5 tokens, 3 of them cached") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	if want := `"messages":[{"role":"system","content":""},{"role":"user","content":"Well?"}]`; !strings.Contains(f.body,
		want) {
		t.Errorf("request %s, want %s", f.body, want)
	}

	pictures := filepath.Join("..", "testdata", "pictures", "shapes.png")
	code, _, errs = runMain([]string{"run", "talk", "see " + pictures}, "")
	if data, err := os.ReadFile(pictures); code != 0 || err != nil ||
		!strings.Contains(f.body, `"content":"see","images":["`) || len(f.body) < len(data) {
		t.Errorf("code %d, %s, %v; request %.200s", code, errs, err, f.body)
	}
}

func TestRunAsksServerForText(t *testing.T) {
	f := asServer(t, `{"response":"there"}`, `{"response":"","done":true,"done_reason":"length"}`)
	for _, args := range [][]string{{"run", "plain", "Once"}, {"run", "talk", "--raw", "Once"}} {
		code, out, errs := runMain(args, "")
		if code != 0 || out != "there\n" || errs != "" || f.path != "/api/generate" ||
			!strings.Contains(f.body, `"prompt":"Once","raw":true`) {
			t.Errorf("%v: code %d, %q, %q; %s received %s", args, code, out, errs, f.path, f.body)
		}
	}
}

// TestRunServerFails checks that an incomplete response is an error.
func TestRunServerFails(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{[]string{`{"message":{"content":"Hi"}}`, "die"}, "the server is gone: http.*in the middle of the response"},
		{[]string{`{"message":{"content":"Hi"}}`}, "the server is gone: http.*in the middle of the response"},
		{[]string{`{"message":{"content":"Hi"}}`, `{"mess`}, "in the middle of the response"},
		{[]string{`{"message":{"content":"Hi"}}`, `{"error":"the model's process died: signal: killed"}`},
			"the model's process died: signal: killed"},
		{[]string{"status 503", `{"error":"too many requests"}`}, "too many requests"},
	} {
		asServer(t, test.lines...)
		code, _, errs := runMain([]string{"run", "talk", "Well?"}, "")
		if code != 1 || strings.Count(errs, "\n") != 1 || !regexp.MustCompile(test.want).MatchString(errs) {
			t.Errorf("%v: code %d, %q, want %q", test.lines, code, errs, test.want)
		}
	}
}

// TestRunDoesNotAsk checks that no server is used with flags of computation, or if it serves another store.
func TestRunDoesNotAsk(t *testing.T) {
	f := asServer(t, lastLine)
	for _, flag := range []string{"--local", "--float32", "--threads=1", "--cpu-math=exact"} {
		if code, _, errs := runMain([]string{"run", "talk", "Well?", flag}, ""); code != 1 || f.path != "" {
			t.Errorf("%s: code %d, %q; %s received a request", flag, code, errs, f.path)
		}
	}
	old := os.Getenv("INGOT_HOME")
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "copy"))
	if err := os.CopyFS(os.Getenv("INGOT_HOME"), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runMain([]string{"run", "talk", "Well?"}, ""); code != 1 || f.path != "" {
		t.Errorf("with another store: code %d, %q; %s received a request", code, errs, f.path)
	}
}
