package server_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// promptRoutes are requests for which the server builds a prompt.
var promptRoutes = map[string][]string{
	"/api/generate": {`{"model":"talk","prompt":"x","stream":false}`,
		`{"model":"talk","prompt":"x","raw":true,"stream":false}`,
		`{"model":"talk","prompt":"x","template":"{{ .Prompt }}"}`},
	"/api/chat": {`{"model":"talk","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"plain","messages":[{"role":"user","content":"x"}],"stream":false}`},
	"/api/embed":      {`{"model":"talk","input":["x","y"]}`},
	"/api/embeddings": {`{"model":"talk","prompt":"x"}`},
	"/v1/chat/completions": {`{"model":"talk","messages":[{"role":"user","content":"x"}],"n":2}`,
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"stream":true}`},
	"/v1/completions":            {`{"model":"plain","prompt":["x","y"]}`, `{"model":"plain","prompt":"x","stream":true}`},
	"/v1/responses":              {`{"model":"talk","input":"x"}`, `{"model":"talk","input":"x","truncation":"auto"}`},
	"/v1/responses/input_tokens": {`{"model":"talk","input":"x"}`},
	"/v1/responses/compact":      {`{"model":"talk","input":"x"}`},
	"/v1/messages":               {`{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`},
	"/v1/messages/count_tokens":  {`{"model":"talk","messages":[{"role":"user","content":"x"}]}`},
	"/v1/tokenize": {`{"model":"talk","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"talk","prompt":"x"}`, `{"model":"talk","prompt":"x","add_special_tokens":false}`},
	"/v1/embeddings": {`{"model":"talk","input":"x"}`},
}

// promptless are the other endpoints that take a body.
var promptless = []string{"/api/show", "/api/copy", "/api/delete", "/api/create", "/api/blobs/{digest}", "/api/pull",
	"/api/push", "/v1/detokenize", "/v1/schema/check", "/v1/responses/{id}", "/v1/responses/{id}/cancel",
	"/v1/files", "/v1/files/{id}", "/v1/batches", "/v1/batches/{id}/cancel"}

// postTo sends a request and returns the response and its body.
func (f *fixture) postTo(t *testing.T, path, body string) (*http.Response, string) {
	t.Helper()
	response, err := http.Post(f.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// promptsFree checks that all prompt memory is free and no request waits for it.
func (f *fixture) promptsFree(t *testing.T) {
	t.Helper()
	release, free := f.HoldPrompts()
	if !free || f.WaitingPrompts() != 0 {
		t.Fatal("prompt memory is still reserved")
	}
	release()
}

// Every route that builds a prompt reserves its memory from one budget and releases it.
func TestPromptMemoryIsShared(t *testing.T) {
	f := serveMute(t, nil)
	f.SetPromptWait(20 * time.Millisecond)
	for _, r := range f.AllEndpoints() {
		if r.Method == "GET" || slices.Contains(promptless, r.Path) {
			continue
		}
		bodies := promptRoutes[r.Path]
		if len(bodies) == 0 && r.Method != "HEAD" {
			t.Errorf("%s %s is in neither list", r.Method, r.Path)
		}
		for _, body := range bodies {
			release, free := f.HoldPrompts()
			if !free {
				t.Fatal("prompt memory is still reserved")
			}
			response, text := f.postTo(t, r.Path, body)
			release()
			want := http.StatusServiceUnavailable
			if strings.HasPrefix(r.Path, "/v1/messages") {
				want = 529
			}
			retry := response.Header.Get("Retry-After")
			if response.StatusCode != want || retry != "1" || !strings.Contains(text, "no memory for the prompt") {
				t.Errorf("%s %s without memory: status %d, Retry-After %q: %s", r.Path, body, response.StatusCode, retry, text)
			}
			f.promptsFree(t)
			response, text = f.postTo(t, r.Path, body)
			mute := strings.Contains(text, "the model wrote no summary") // nothing else went wrong
			if response.StatusCode != http.StatusOK && !mute {
				t.Errorf("%s %s: status %d: %s", r.Path, body, response.StatusCode, text)
			}
			f.promptsFree(t)
		}
	}
}

// Errors release memory: errors of templates, limits and requests, and clients that disconnect while they wait.
func TestPromptMemoryAfterErrors(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { o.MaxBody = 32 << 20 })
	long := strings.Repeat("x", limits.PromptText+1)
	for body, want := range map[string]string{
		`{"model":"talk","prompt":"x","template":"{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}"}`: "limit",
		`{"model":"talk","prompt":"x","template":"{{ ('x' * 100000000) | length }}"}`:                         "limit",
		`{"model":"talk","prompt":"x","template":"{% if 1 %}{{ raise_exception('no') }}{% endif %}"}`:         "no",
		`{"model":"talk","prompt":"` + long +
			`"}`: "the limit is 8388608",
		`{"model":"talk","prompt":"` + long +
			`","raw":true}`: "the limit is 8388608",
	} {
		if response, text := f.postTo(t, "/api/generate", body); response.StatusCode != 400 ||
			!strings.Contains(strings.ToLower(text), want) {
			t.Errorf("%.200s: status %d: %.300s", body, response.StatusCode, text)
		}
		f.promptsFree(t)
	}
	body := `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}]}`
	if response, text := f.postTo(t, "/v1/messages", body); response.StatusCode != 400 ||
		!strings.Contains(text, "prompt is too long") {
		t.Errorf("a long prompt: status %d: %.300s", response.StatusCode, text)
	}
	release, free := f.HoldPrompts()
	if !free {
		t.Fatal("prompt memory is still reserved")
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/v1/tokenize",
		strings.NewReader(`{"model":"talk","prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { _, err := http.DefaultClient.Do(r); left <- err }()
	waits := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); f.WaitingPrompts() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d requests wait, want %d", f.WaitingPrompts(), n)
			}
		}
	}
	waits(1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waits(0)
	release()
	f.promptsFree(t)
}

// The choices of a request share one prompt, which is built once.
func TestChoicesShareThePrompt(t *testing.T) {
	var renders atomic.Int64
	f := serve(t, func(o *server.Options) {
		o.Clock = func() time.Time { renders.Add(1); return time.Now() }
		servertest.Create(t, o.Store, "dated", modelfile.Command{Name: modelfile.Template,
			Value: `{{ strftime_now('%Y') }}{% for m in messages %}{{ m.content }}{% endfor %}`},
			modelfile.Command{Name: modelfile.Parser, Value: "qwen3"})
	})
	f.Says = []string{"<think>hm</think>", "so"}
	_, text := f.Ask(t, "POST", "/v1/chat/completions",
		`{"model":"dated","messages":[{"role":"user","content":"x"}],"n":5}`)
	if n := strings.Count(text, `"content":"so"`); n != 5 || renders.Load() != 1 {
		t.Errorf("%d renders for %d choices: %s", renders.Load(), n, text)
	}
}

// headOfPNG returns a PNG that ends after its header.
func headOfPNG(side uint32) string {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
	head = append(binary.BigEndian.AppendUint32(head, side), 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head)))
}

// createSees adds the model "sees", which accepts pictures.
func createSees(t testing.TB, store *store.Store) {
	t.Helper()
	n, err := manifest.ParseName("sees")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "testdata", "models", "qwen3_5-vision")
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: dir}}}
	if _, err := convert.Create(t.Context(), store, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
}

// The server reads only the headers of pictures. The model's process decodes the pixels.
func TestPicturesCountByHeader(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { createSees(t, o.Store) })
	images := fmt.Sprintf(`"images":[%q,%[1]q]`, headOfPNG(8192))
	f.Has(t, "POST", "/v1/tokenize", `{"model":"sees","messages":[{"role":"user","content":"x",`+images+`}]}`, 200,
		`"count":`)
	source := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`,
		headOfPNG(8192))
	f.Has(t, "POST", "/v1/messages/count_tokens", `{"model":"sees","messages":[{"role":"user","content":[`+source+`]}]}`,
		200, `"input_tokens":`)
	f.Has(t, "POST", "/v1/tokenize",
		fmt.Sprintf(`{"model":"sees","messages":[{"role":"user","content":"x","images":[%q]}]}`, headOfPNG(8193)), 400,
		"67108864")
}
