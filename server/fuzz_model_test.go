package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	ingot "github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
)

// computed is a model in this process.
type computed struct {
	*batch.Engine
	done chan struct{} // never closed
}

func (c computed) Done() <-chan struct{} { return c.done }

// Generate generates few tokens, since the fuzzer ends a process whose input takes 10 s:
// https://go.dev/src/internal/fuzz/worker.go.
func (c computed) Generate(ctx context.Context, r ingot.Request) iter.Seq2[ingot.Event, error] {
	const most = 24
	if r.MaxTokens <= 0 || r.MaxTokens > most {
		r.MaxTokens = most
	}
	return c.Engine.Generate(ctx, r)
}

// serveComputed returns a server whose models compute in this process.
func serveComputed(t testing.TB) *fixture {
	t.Helper()
	thread := mlxtest.Open(t)
	return serve(t, func(o *server.Options) {
		o.MaxBody = 1 << 20
		o.KeepAlive = time.Hour
		createSees(t, o.Store)
		images := o.Store
		o.Load = func(ctx context.Context, c server.Child, _ func(float64)) (pool.Model, error) {
			name, err := manifest.ParseName(c.Name)
			if err != nil {
				return nil, err
			}
			entry, err := images.Resolve(ctx, name)
			if err != nil {
				return nil, err
			}
			e, err := batch.Open(ctx, thread, images, entry, ingot.Options{})
			return computed{e, make(chan struct{})}, err
		}
	})
}

// FuzzRequests: whatever a request of any API is, its answer is a success or an error in the form of that API, with a
// status below 500. It is JSON or a stream of it, of a bounded size, and leaves no memory and no goroutine behind.
func FuzzRequests(f *testing.F) {
	for i := range 64 {
		seed := make([]byte, 120)
		for j := range seed {
			seed[j] = byte(i*53 + j*j*7 + i*j*11)
		}
		f.Add(seed)
	}
	s := serveComputed(f)
	ask := func(path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.direct(w, "POST", path, body)
		return w
	}
	models := []string{"talk", "plain", "sees"}
	for _, model := range models {
		if w := ask("/api/generate", `{"model":"`+model+`","prompt":"x","options":{"num_predict":1}}`); w.Code != 200 {
			f.Fatalf("%s: status %d: %s", model, w.Code, w.Body)
		}
	}
	idle := runtime.NumGoroutine()
	f.Fuzz(func(t *testing.T, choices []byte) {
		path, body := asker{runtest.NewChoices(choices)}.request(models...)
		w := ask(path, body)
		response := w.Body.Bytes()
		switch {
		case w.Code >= 500:
			t.Errorf("%s %s: status %d: %s", path, body, w.Code, response)
		case w.Code >= 400:
			checkError(t, path, body, response)
		default:
			checkStream(t, path, body, w.Header().Get("Content-Type"), response)
		}
		if len(response) > 4<<20 {
			t.Errorf("%s %s: an answer of %d bytes", path, body, len(response))
		}
		release, free := s.HoldPrompts()
		if !free {
			t.Fatalf("prompt memory is not released after %s %s", path, body)
		}
		release()
		checkIdle(t, idle+20, path, body)
	})
}

// checkError checks that an error has the form of its API and is one readable line.
func checkError(t *testing.T, path, body string, response []byte) {
	t.Helper()
	var e struct {
		Type  string
		Error json.RawMessage
	}
	if err := json.Unmarshal(response, &e); err != nil {
		t.Fatalf("%s %s: %v: %s", path, body, err, response)
	}
	var message string
	var detail struct{ Message, Type string }
	switch {
	case strings.HasPrefix(path, "/api/"):
		if json.Unmarshal(e.Error, &message) != nil {
			t.Errorf("%s %s: %s", path, body, response)
		}
	case json.Unmarshal(e.Error, &detail) != nil || detail.Type == "",
		strings.HasPrefix(path, "/v1/messages") && e.Type != "error":
		t.Errorf("%s %s: %s", path, body, response)
	default:
		message = detail.Message
	}
	if message == "" || len(message) > 4000 || strings.Contains(message, "\n") || strings.Contains(message, "panic") {
		t.Errorf("%s %s: message %q", path, body, message)
	}
}

// checkStream checks that an answer is JSON, line by line, or as events.
func checkStream(t *testing.T, path, body, contentType string, response []byte) {
	t.Helper()
	for line := range bytes.Lines(response) {
		line = bytes.TrimSpace(line)
		if strings.HasPrefix(contentType, "text/event-stream") {
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok || string(data) == "[DONE]" {
				continue
			}
			line = data
		} else if strings.HasPrefix(contentType, "application/json") {
			line = response
		}
		if !json.Valid(line) {
			t.Fatalf("%s %s: not JSON: %s", path, body, line)
		}
		var about struct{ Error json.RawMessage } // the error that a stream ends with
		if path != "/v1/schema/check" && json.Unmarshal(line, &about) == nil && len(about.Error) > len("null") {
			checkError(t, path, body, line)
		}
	}
}

// checkIdle waits until goroutines of a request have ended.
func checkIdle(t *testing.T, most int, path, body string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines remain after %s %s:\n%s", runtime.NumGoroutine(), path, body,
				stacks[:runtime.Stack(stacks, true)])
		}
	}
}
