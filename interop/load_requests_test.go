package interop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// loadKinds are the kinds of requests. Each returns an error for a response that is not as expected.
var loadKinds = map[string]func(*load, *rand.Rand) error{
	"generate": (*load).generate, "chat": (*load).chat, "messages": (*load).messages, "responses": (*load).responses,
	"picture": (*load).picture, "cancel": (*load).cancel, "wrong": (*load).wrong, "reload": (*load).reload,
	"slow": (*load).slow,
}

var loadOrder = slices.Sorted(maps.Keys(loadKinds))

// words returns a prompt: a beginning that many share, and an end of its own.
func words(r *rand.Rand) string {
	begin := []string{"Once upon a time there was a dog. ", "The cat sat in the big park. "}[r.IntN(2)]
	list := make([]string, 1+r.IntN(30))
	for i := range list {
		list[i] = []string{"dog", "cat", "ran", "home", "big", "park", "and", "the"}[r.IntN(8)]
	}
	return strings.Repeat(begin, 1+r.IntN(6)) + strings.Join(list, " ")
}

func tokens(r *rand.Rand) int { return 1 + r.IntN(24) }

// post sends a request and reads its response, which must have the status and contain a text.
func (l *load) post(ctx context.Context, path string, body map[string]any, status int, part string) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return l.postText(ctx, path, string(b), status, part)
}

func (l *load) postText(ctx context.Context, path, body string, status int, part string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.origin+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != status:
		return fmt.Errorf("%s: status %d, want %d: %.300s", path, response.StatusCode, status, text)
	case !strings.Contains(string(text), part):
		return fmt.Errorf("%s: no %q in %.300s", path, part, text)
	}
	return nil
}

func (l *load) generate(r *rand.Rand) error {
	return l.post(l.user.t.Context(), "/api/generate", map[string]any{"model": "story", "prompt": words(r), "raw": true,
		"options": map[string]any{"num_predict": tokens(r), "temperature": r.IntN(2)}}, 200, `"done":true`)
}

func (l *load) chat(r *rand.Rand) error {
	return l.post(l.user.t.Context(), "/v1/chat/completions", map[string]any{"model": "story", "stream": true,
		"max_tokens": tokens(r), "prompt_cache_key": "load",
		"messages": []any{map[string]any{"role": "user", "content": words(r)}}}, 200, "[DONE]")
}

func (l *load) messages(r *rand.Rand) error {
	block := map[string]any{"type": "text", "text": words(r), "cache_control": map[string]any{"type": "ephemeral"}}
	return l.post(l.user.t.Context(), "/v1/messages", map[string]any{"model": "story", "stream": r.IntN(2) == 0,
		"max_tokens": tokens(r), "messages": []any{map[string]any{"role": "user", "content": []any{block}}}}, 200,
		"output_tokens")
}

func (l *load) responses(r *rand.Rand) error {
	return l.post(l.user.t.Context(), "/v1/responses", map[string]any{"model": "muse", "input": words(r),
		"max_output_tokens": tokens(r)}, 200, "output_tokens")
}

// shapes is a picture as a data URL.
var shapes = sync.OnceValue(func() string {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "pictures", "shapes.png"))
	if err != nil {
		panic(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
})

func (l *load) picture(r *rand.Rand) error {
	return l.post(l.user.t.Context(), "/v1/chat/completions", map[string]any{"model": "sight", "max_tokens": tokens(r),
		"messages": []any{map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": words(r)},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": shapes()}},
		}}}}, 200, "completion_tokens")
}

// cancel leaves at a random moment.
func (l *load) cancel(r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(l.user.t.Context(), time.Duration(r.IntN(300))*time.Millisecond)
	defer cancel()
	model := []string{"story", "muse"}[r.IntN(2)]
	err := l.post(ctx, "/api/generate", map[string]any{"model": model, "prompt": words(r), "raw": true,
		"options": map[string]any{"num_predict": 400, "ignore_eos": true}}, 200, `"done":true`)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// wrong sends a request that must be refused.
func (l *load) wrong(r *rand.Rand) error {
	for _, c := range []struct {
		path, body string
		status     int
		part       string
	}{
		{"/api/generate", `{"model":"story","prompt":`, 400, "error"},
		{"/api/generate", `{"model":"absent","prompt":"a"}`, 404, "error"},
		{"/v1/chat/completions", `{"model":"story","messages":[]}`, 400, "error"},
		{"/v1/chat/completions", `{"model":"story","temperature":-1,"messages":[{"role":"user","content":"a"}]}`, 400,
			"error"},
		{"/v1/messages", `{"model":"story","messages":[{"role":"user","content":"a"}]}`, 400, "max_tokens"},
		{"/v1/completions", `{"model":"story","prompt":[999999]}`, 400, "error"},
		{"/v1/responses", `{"model":"story","input":"a","previous_response_id":"x"}`, 400, "error"},
		{"/v1/chat/completions", `{"model":"sight","messages":[{"role":"user","content":[{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, 400, "error"},
	} {
		if r.IntN(4) > 0 {
			continue
		}
		if err := l.postText(l.user.t.Context(), c.path, c.body, c.status, c.part); err != nil {
			return err
		}
	}
	return nil
}

// reload unloads a model that others use, rarely: the next request loads it again.
func (l *load) reload(r *rand.Rand) error {
	if r.IntN(4) > 0 {
		return nil
	}
	model := []string{"muse", "sight"}[r.IntN(2)]
	return l.post(l.user.t.Context(), "/api/generate", map[string]any{"model": model, "keep_alive": 0}, 200, "unload")
}

// slow reads a response a few bytes at a time.
func (l *load) slow(r *rand.Rand) error {
	body := fmt.Sprintf(`{"model":"story","prompt":%q,"raw":true,"logprobs":true,"top_logprobs":20,`+
		`"options":{"num_predict":4}}`, words(r))
	response, err := http.Post(l.origin+"/api/generate", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for buf := make([]byte, 256); err == nil; {
		time.Sleep(5 * time.Millisecond)
		_, err = response.Body.Read(buf)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
