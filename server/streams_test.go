package server_test

import (
	"errors"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/servertest"
)

const (
	streamTool  = `"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"integer"}}}`
	streamUser  = `"messages":[{"role":"user","content":"Hi"}]`
	streamTools = `"tools":[{"type":"function","function":{` + streamTool + `}}]`
)

// streamRequest is a streamed request of an API.
type streamRequest struct {
	path, body string
	says, want []string // the pieces of the output, and what each message with content has
	// Patterns of messages: with each kind of content, keep-alives, and the last one of a request that succeeds or fails.
	thinking, text, call, alive, last, failed string
}

// mixedOutput has two kinds of content in each piece.
var mixedOutput = []string{"<think>\nhm</think>It",
	` is so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}

var streamRequests = []streamRequest{{
	path: "/v1/chat/completions", body: `{"model":"talk","stream":true,` + streamUser + `,` + streamTools + `}`,
	says: mixedOutput, want: []string{"thinking", "text", "text", "call"},
	thinking: `"reasoning_content":"`, text: `"content":"[^"]`, call: `"tool_calls":`,
	alive: `^: keep-alive$`, last: `^data: \[DONE\]$`, failed: `^data: \{"error":\{"message":"`,
}, {
	path: "/v1/completions", body: `{"model":"plain","stream":true,"prompt":"Hi"}`,
	says: []string{"It", " is so."}, want: []string{"text", "text"},
	thinking: `^$`, text: `"text":"[^"]`, call: `^$`,
	alive: `^: keep-alive$`, last: `^data: \[DONE\]$`, failed: `^data: \{"error":\{"message":"`,
}, {
	path: "/v1/responses",
	body: `{"model":"talk","stream":true,"input":"Hi","tools":[{"type":"function",` + streamTool + `}]}`,
	says: mixedOutput, want: []string{"thinking", "text", "text", "call"},
	thinking: `"response.reasoning_text.delta".*"delta":"[^"]`, text: `"response.output_text.delta".*"delta":"[^"]`,
	call:  `"response.function_call_arguments.delta"`,
	alive: `"type":"response.in_progress"|"type":"response.output_text.delta".*"delta":""`,
	last:  `"type":"response.completed"`, failed: `"type":"response.failed"`,
}, {
	path: "/v1/messages", body: `{"model":"talk","stream":true,"max_tokens":9,` + streamUser +
		`,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
	says: mixedOutput, want: []string{"thinking", "text", "text", "call"},
	thinking: `"thinking_delta"`, text: `"text_delta"`, call: `"input_json_delta"`,
	alive: `"type":"ping"`, last: `"type":"message_stop"`, failed: `^event: error\ndata: \{"type":"error"`,
}, {
	path: "/api/chat", body: `{"model":"talk",` + streamUser + `,` + streamTools + `}`,
	says: mixedOutput, want: []string{"thinking", "text", "text", "call"},
	thinking: `"thinking":"`, text: `"content":"[^"]`, call: `"tool_calls":`,
	alive: `"message":\{"role":"assistant","content":""\},"done":false`, last: `"done":true`, failed: `^\{"error":"`,
}, {
	path: "/api/generate", body: `{"model":"talk","prompt":"Hi"}`,
	says: []string{mixedOutput[0], " is so."}, want: []string{"thinking", "text", "text"},
	thinking: `"thinking":"`, text: `"response":"[^"]`, call: `"tool_calls":`,
	alive: `"response":"","done":false`, last: `"done":true`, failed: `^\{"error":"`,
}}

// messages divides a stream.
func (q streamRequest) messages(text string) []string {
	end := "\n\n"
	if strings.HasPrefix(q.path, "/api/") {
		end = "\n"
	}
	return strings.Split(strings.TrimSuffix(text, end), end)
}

// contents returns the kinds of content of each message that has any.
func (q streamRequest) contents(text string) (list []string) {
	for _, m := range q.messages(text) {
		kinds := ""
		for _, k := range [][2]string{{"thinking ", q.thinking}, {"text ", q.text}, {"call ", q.call}} {
			if regexp.MustCompile(k[1]).MatchString(m) {
				kinds += k[0]
			}
		}
		if kinds != "" {
			list = append(list, strings.TrimSpace(kinds))
		}
	}
	return list
}

// reader is a client that notes how long it waits for bytes.
type reader struct {
	*httptest.ResponseRecorder
	mu      sync.Mutex
	last    time.Time // when it got bytes, or sent the request
	longest time.Duration
}

func (c *reader) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, time.Since(c.last))
	c.last = time.Now()
	return c.ResponseRecorder.Write(p)
}

func (c *reader) got() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Body.String()
}

// slowly runs a test for each streamed request with a server without a listener, whose clock advances when everything
// waits.
func slowly(t *testing.T, test func(t *testing.T, f *servertest.Fixture, q streamRequest, c *reader)) {
	servertest.New(t, nil, all.APIs...).Close() // makes the models
	for _, q := range streamRequests {
		t.Run(strings.TrimPrefix(q.path, "/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := servertest.New(t, nil, all.APIs...)
				f.Says = q.says
				test(t, f, q, &reader{ResponseRecorder: httptest.NewRecorder(), last: time.Now()})
				f.Close()
			})
		})
	}
}

func (q streamRequest) ask(f *servertest.Fixture, c *reader) {
	f.ServeHTTP(c, httptest.NewRequest("POST", "http://localhost"+q.path, strings.NewReader(q.body)))
}

// While a model loads, evaluates a prompt and pauses in the middle of its output, no client waits longer than 5 s for a
// byte. Each message has one kind of content, in the order of the output, and what fills the silence has none.
func TestNoClientWaits(t *testing.T) {
	const clientTimeout, pause = 5 * time.Second, 10 * time.Minute
	slowly(t, func(t *testing.T, f *servertest.Fixture, q streamRequest, c *reader) {
		f.Loading, f.Prefill, f.Wait = make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			for _, gate := range []chan struct{}{f.Loading, f.Prefill, f.Wait} {
				time.Sleep(pause)
				close(gate)
			}
		}()
		q.ask(f, c)
		text := c.got()
		if c.longest > clientTimeout || c.Code != 200 {
			t.Errorf("status %d; the client waited for %v", c.Code, c.longest)
		}
		if got := q.contents(text); !slices.Equal(got, q.want) {
			t.Errorf("the messages have %q, want %q", got, q.want)
		}
		list, alive := q.messages(text), 0
		for _, m := range list {
			if regexp.MustCompile(q.alive).MatchString(m) {
				alive++
			}
		}
		least := int(3*pause/clientTimeout) - 3
		if alive < least || !regexp.MustCompile(q.last).MatchString(list[len(list)-1]) {
			t.Errorf("%d keep-alives, want %d; the end is %s", alive, least, list[len(list)-1])
		}
		if strings.HasPrefix(q.path, "/api/") {
			servertest.Lines(t, text)
			return
		}
		for _, e := range servertest.Events(t, text) {
			if e.Data != "[DONE]" {
				servertest.Decode[any](t, e.Data)
			}
		}
	})
}

// What is generated in one step is divided by kind, and each call has a message of its own.
func TestOneKindOfContent(t *testing.T) {
	slowly(t, func(t *testing.T, f *servertest.Fixture, q streamRequest, c *reader) {
		if !slices.Contains(q.want, "call") {
			return
		}
		f.Says = []string{strings.Join(append(q.says, q.says[1]), "")}
		q.ask(f, c)
		want := []string{"thinking", "text", "call", "text", "call"}
		if got := q.contents(c.got()); !slices.Equal(got, want) {
			t.Errorf("the messages have %q, want %q", got, want)
		}
	})
}

// The headers come as soon as a loaded model has queued the request.
func TestHeadersAtOnce(t *testing.T) {
	slowly(t, func(t *testing.T, f *servertest.Fixture, q streamRequest, c *reader) {
		f.Prefill = make(chan struct{})
		done := make(chan struct{})
		go func() { q.ask(f, c); close(done) }()
		synctest.Wait()
		if kind := c.Header().Get("Content-Type"); !c.Flushed || c.Code != 200 || time.Since(c.last) != 0 ||
			!strings.HasPrefix(kind, "text/event-stream") && !strings.HasPrefix(kind, "application/x-ndjson") {
			t.Errorf("status %d, %s, flushed: %v", c.Code, kind, c.Flushed)
		}
		close(f.Prefill)
		<-done
	})
}

// loadsFor makes loads take a while.
func loadsFor(d time.Duration) func(*servertest.Fixture) {
	return func(f *servertest.Fixture) {
		loading := make(chan struct{})
		f.Loading = loading
		time.AfterFunc(d, func() { close(loading) })
	}
}

// An error keeps its status if it comes before the first byte. Later it is the last message, in the form of the API.
func TestErrorsOfSlowRequests(t *testing.T) {
	for name, c := range map[string]struct {
		before func(f *servertest.Fixture)
		status int // 200: the error is a message
	}{
		"a load that fails at once": {loadsFor(0), 500},
		"a load that fails soon":    {loadsFor(time.Second), 500},
		"a load that fails late":    {loadsFor(time.Minute), 200},
		"no memory for the prompt":  {func(f *servertest.Fixture) { _, _ = f.HoldPrompts() }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			slowly(t, func(t *testing.T, f *servertest.Fixture, q streamRequest, client *reader) {
				f.NoLoad = errors.New("out of memory")
				c.before(f)
				q.ask(f, client)
				list := q.messages(client.got())
				if last := list[len(list)-1]; client.Code != c.status ||
					client.Code == 200 && !regexp.MustCompile(q.failed).MatchString(last) {
					t.Errorf("status %d: %s", client.Code, last)
				}
			})
		})
	}
}
