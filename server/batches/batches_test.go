package batches

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// line returns a line of a batch.
func line(id string) string {
	return `{"custom_id":"` + id + `","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"` + id + `"}}`
}

// echo responds with the request's prompt, after a while.
func echo(ctx context.Context, r Request) (Response, error) {
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	var q struct{ Prompt string }
	if err := json.Unmarshal(r.Body, &q); err != nil {
		return Response{}, err
	}
	status := 200
	if strings.HasPrefix(q.Prompt, "bad") {
		status = 400
	}
	return Response{Status: status, Body: []byte(`{"said":"` + q.Prompt + `"}`)}, ctx.Err()
}

// decode returns lines of results.
func decode(t *testing.T, b []byte) (all []Result) {
	t.Helper()
	for text := range strings.Lines(string(b)) {
		var r Result
		if err := json.Unmarshal([]byte(text), &r); err != nil || !strings.HasSuffix(text, "\n") {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, r)
	}
	return all
}

// Results are in the order of the lines, however long the requests take, and the requests that run at once are bounded.
func TestOrder(t *testing.T) {
	const n = 200
	var in strings.Builder
	for i := range n {
		id := fmt.Sprint("r", i)
		if i%10 == 3 {
			id = fmt.Sprint("bad", i)
		}
		in.WriteString(line(id) + "\n\n")
	}
	var running, most atomic.Int64
	var out bytes.Buffer
	last := Counts{}
	r := New(strings.NewReader(in.String()), Options{Parallel: 5, Progress: func(c Counts) {
		if c.Done() != last.Done()+1 {
			t.Errorf("progress %+v after %+v", c, last)
		}
		last = c
	}})
	err := r.Run(t.Context(), &out, func(ctx context.Context, q Request) (Response, error) {
		if now := running.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer running.Add(-1)
		return echo(ctx, q)
	})
	if err != nil {
		t.Fatal(err)
	}
	all := decode(t, out.Bytes())
	if len(all) != n || r.Counts() != (Counts{n - n/10, n / 10}) || most.Load() != 5 {
		t.Errorf("%d results, %+v, %d requests at once", len(all), r.Counts(), most.Load())
	}
	for i, got := range all {
		if !strings.HasSuffix(*got.CustomID, fmt.Sprint(i)) || string(got.Response.Body) != `{"said":"`+*got.CustomID+`"}` ||
			got.Succeeded() == strings.HasPrefix(*got.CustomID, "bad") || got.Error != nil || got.ID == "" {
			t.Errorf("result %d: %+v", i, got)
		}
	}
}

// A line that is no request has an error with its number, and the others go on.
func TestWrongLines(t *testing.T) {
	long := strings.Repeat("x", limits.BatchID)
	of := func(method, url, body string) string {
		return `{"custom_id":"a","method":"` + method + `","url":"` + url + `","body":` + body + "}"
	}
	for text, want := range map[string]string{
		`{`:                                "it is not a request in JSON: unexpected end of JSON input (at byte 1)",
		`[1]`:                              "it is not a request in JSON",
		`{"custom_id":7}`:                  "it is not a request in JSON: custom_id: a number",
		`{"method":"POST"}`:                "custom_id: missing",
		line(""):                           "custom_id: missing",
		line(long + "x"):                   "custom_id: 513 bytes, at most 512",
		`{"custom_id":"a"}`:                "method: nothing is not POST",
		of("GET", "/v1/completions", "{}"): "method: GET is not POST",
		of("POST", "/v1/messages", "{}"):   "url: /v1/messages is not one of /v1/chat/",
		`{"custom_id":"b","method":"POST","url":"/v1/completions"}`:      "body: it is not a JSON object",
		of("POST", "/v1/completions", "[]"):                              "body: it is not a JSON object",
		of("POST", "/v1/completions", "null"):                            "body: it is not a JSON object",
		of("POST", "/v1/completions", `{"stream":true}`):                 "body.stream: ",
		of("POST", "/v1/responses", `{"background": true}`):              "body.background: ",
		of(strings.Repeat("x", limits.BatchLine), "/v1/responses", "{}"): "it has more than 16777216 bytes",
		"\xff\xfe": "it is not a request in JSON",
	} {
		var out bytes.Buffer
		r := New(strings.NewReader(line("first")+"\n"+text+"\n"+line(long)), Options{})
		if err := r.Run(t.Context(), &out, echo); err != nil {
			t.Error(err)
		}
		all := decode(t, out.Bytes())
		if len(all) != 3 || !all[0].Succeeded() || !all[2].Succeeded() || *all[2].CustomID != long {
			t.Errorf("%.100s: %+v", text, all)
			continue
		}
		e := all[1].Error
		if e == nil || !strings.HasPrefix(e.Message, "line 2: "+want) || all[1].Line != 2 || all[1].Response != nil {
			t.Errorf("%.100s: %+v, want %q", text, e, want)
		}
	}
	var out bytes.Buffer
	r := New(strings.NewReader(line("a")), Options{Endpoint: "/v1/embeddings"})
	if err := r.Run(t.Context(), &out, echo); err != nil || !strings.Contains(out.String(), "not the batch's endpoint") {
		t.Errorf("%v: %s", err, out.String())
	}
	for _, empty := range []string{"", "\n \n"} {
		r := New(strings.NewReader(empty), Options{})
		if err := r.Run(t.Context(), io.Discard, echo); err != nil || r.Counts().Done() > 0 {
			t.Errorf("%q: %+v, %v", empty, r.Counts(), err)
		}
	}
}

// A run that is interrupted anywhere, also within a result, continues without running a finished request again.
func TestResume(t *testing.T) {
	var in strings.Builder
	for i := range 60 {
		if i%7 == 5 {
			in.WriteString("oops\n")
			continue
		}
		in.WriteString(line(fmt.Sprint("r", i)) + "\n")
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	var whole []byte
	for round := 0; ; round++ {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		r := New(strings.NewReader(in.String()), Options{Parallel: 3})
		if err := r.Resume(f); err != nil {
			t.Fatal(err)
		}
		before := r.Counts().Done()
		ctx, cancel := context.WithCancel(t.Context())
		r.o.Progress = func(c Counts) {
			if c.Done() == before+9 {
				cancel()
			}
		}
		err = r.Run(ctx, f, func(ctx context.Context, q Request) (Response, error) {
			if bytes.Contains(whole, []byte(`"custom_id":"`+q.CustomID+`"`)) {
				t.Errorf("round %d runs %s again", round, q.CustomID)
			}
			return echo(ctx, q)
		})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if cerr := f.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		b, rerr := os.ReadFile(path)
		if rerr != nil || len(b) < len(whole) || !bytes.Equal(b[:len(whole)], whole) {
			t.Fatalf("round %d has changed finished results: %v", round, rerr)
		}
		whole = b
		if err == nil {
			break
		}
		// A crash leaves a part of a result, or zeros.
		tail := [][]byte{nil, []byte(`{"id":"x","custom`), make([]byte, 100)}[round%3]
		if err := os.WriteFile(path, append(bytes.Clone(b), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := decode(t, whole)
	if len(all) != 60 {
		t.Fatalf("%d results", len(all))
	}
	for i, got := range all {
		if wrong := i%7 == 5; wrong != (got.Error != nil) || !wrong && *got.CustomID != fmt.Sprint("r", i) {
			t.Errorf("result %d: %+v", i, got)
		}
	}
	for _, other := range []string{line("other") + "\n" + in.String(), line("r0")} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := New(strings.NewReader(other), Options{}).Resume(f); !errors.Is(err, ErrOther) {
			t.Errorf("the results of another file: %v", err)
		}
		f.Close()
	}
}

// A busy server is asked again, a failed one once, and nothing else.
func TestRepeat(t *testing.T) {
	var waits []time.Duration
	o := Options{pause: func(_ context.Context, d time.Duration) { waits = append(waits, d) }}
	for name, c := range map[string]struct {
		replies []int
		tries   int
		status  int
	}{
		"busy":           {[]int{503, 429, 503, 200}, 4, 200},
		"failed once":    {[]int{500, 200}, 2, 200},
		"fails always":   {[]int{500, 500, 200}, 2, 500},
		"refused":        {[]int{404, 200}, 1, 404},
		"busy and fails": {[]int{503, 500, 503, 500, 200}, 4, 500},
	} {
		waits = nil
		tries := 0
		var out bytes.Buffer
		r := New(strings.NewReader(line("a")), o)
		err := r.Run(t.Context(), &out, func(context.Context, Request) (Response, error) {
			tries++
			return Response{Status: c.replies[tries-1], Body: []byte("{}"), RetryAfter: 5 * time.Second}, nil
		})
		if err != nil {
			t.Error(err)
		}
		if got := decode(t, out.Bytes()); tries != c.tries || got[0].Response.Status != c.status {
			t.Errorf("%s: %d tries, %+v", name, tries, got[0].Response)
		}
		for _, d := range waits {
			if d < 5*time.Second {
				t.Errorf("%s: waits %v", name, waits)
			}
		}
	}
	var out bytes.Buffer
	r := New(strings.NewReader(line("a")), o)
	err := r.Run(t.Context(), &out, func(context.Context, Request) (Response, error) {
		return Response{Status: 200, Body: []byte("<html>")}, nil
	})
	if err != nil || !strings.Contains(out.String(), "is not JSON") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Large results that wait for an earlier one hold up the requests after them.
func TestResultsAhead(t *testing.T) {
	const size, parallel = limits.BatchAhead / 4, 2
	big := []byte(`"` + strings.Repeat("x", size) + `"`)
	var in strings.Builder
	for i := range 10 {
		in.WriteString(line(fmt.Sprint("r", i)) + "\n")
	}
	var started atomic.Int64
	free := make(chan struct{})
	r := New(strings.NewReader(in.String()), Options{Parallel: parallel})
	err := r.Run(t.Context(), io.Discard, func(ctx context.Context, q Request) (Response, error) {
		switch n := started.Add(1); {
		case q.CustomID == "r0":
			<-free
		case n == 6: // four results and the first request are there, so this is the last one for now
			time.AfterFunc(20*time.Millisecond, func() {
				if n := started.Load(); n > 5+parallel {
					t.Errorf("%d requests are started", n)
				}
				close(free)
			})
		}
		return Response{Status: 200, Body: big}, ctx.Err()
	})
	if err != nil || r.Counts().Completed != 10 || r.ahead.Load() != 0 {
		t.Errorf("%v, %+v, %d bytes ahead", err, r.Counts(), r.ahead.Load())
	}
}

// What is left gets an error with the given code.
func TestRest(t *testing.T) {
	var out bytes.Buffer
	r := New(strings.NewReader(line("a")+"\noops\n"+line("b")), Options{})
	if err := r.Rest(&out, CodeExpired, "too late"); err != nil {
		t.Fatal(err)
	}
	all := decode(t, out.Bytes())
	if len(all) != 3 || all[0].Error.Code != CodeExpired || all[1].Error.Code != CodeInvalid ||
		*all[2].CustomID != "b" || all[2].Error.Message != "too late" || r.Counts() != (Counts{Failed: 3}) {
		t.Errorf("%+v", all)
	}
}

// A failed write ends the run with its error.
func TestWriteFails(t *testing.T) {
	full := errors.New("the disk is full")
	r := New(strings.NewReader(strings.Repeat(line("a")+"\n", 50)), Options{})
	err := r.Run(t.Context(), writer(func([]byte) (int, error) { return 0, full }), echo)
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestWithPriority(t *testing.T) {
	b, err := WithPriority([]byte(`{"model":"m","priority":100,"x":{"y":[1]}}`), -7)
	if err != nil || string(b) != `{"model":"m","priority":-7,"x":{"y":[1]}}` {
		t.Errorf("%s, %v", b, err)
	}
}
