package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// client records what it gets and when.
type client struct {
	*httptest.ResponseRecorder
	begun time.Time
	mu    sync.Mutex
	at    []time.Duration // of each write, since the beginning
	reads func() error    // called before each write; nil: the client reads at once
}

func newClient() *client { return &client{ResponseRecorder: httptest.NewRecorder(), begun: time.Now()} }

func (c *client) Write(p []byte) (int, error) {
	if c.reads != nil {
		if err := c.reads(); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Since(c.begun))
	return c.ResponseRecorder.Write(p)
}

// text returns what the client got.
func (c *client) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Body.String()
}

// silence returns the longest time that the client waited for a byte until now.
func (c *client) silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest, last := time.Duration(0), time.Duration(0)
	for _, at := range append(slices.Clone(c.at), time.Since(c.begun)) {
		longest, last = max(longest, at-last), at
	}
	return longest
}

const every = 3 * time.Second

// forms are streams of each form, and what they send.
var forms = map[string]struct {
	make               func(http.ResponseWriter) *Stream
	open, alive, value string
	failed             string
}{
	"events": {
		func(w http.ResponseWriter) (s *Stream) {
			s = NewEvents(w, every, func(e Error) error { return s.Send("error", ErrorJSON{e.Message}) })
			return s
		}, comment, comment, "event: x\ndata: 1\n\n", "event: error\ndata: {\"error\":\"no\"}\n\n",
	},
	"events with pings": {
		func(w http.ResponseWriter) (s *Stream) {
			s = NewEvents(w, every, func(e Error) error { return s.Send("", ErrorJSON{e.Message}) })
			s.KeepAlive(func(send Send) error { return send("ping", 0) })
			return s
		}, comment, "event: ping\ndata: 0\n\n", "event: x\ndata: 1\n\n", "data: {\"error\":\"no\"}\n\n",
	},
	"lines": {
		func(w http.ResponseWriter) *Stream { return NewLines(w, every, func() any { return 0 }) },
		"", "0\n", "1\n", "{\"error\":\"no\"}\n",
	},
}

// A stream is never silent for longer than its interval, whenever messages come.
func TestKeepAlive(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient()
				s := form.make(NewResponse(c, time.Minute))
				defer s.Stop()
				want := ""
				for _, gap := range []float64{7, 0.1, 2.9, 3.1, 0.5, 61} {
					time.Sleep(time.Duration(gap * float64(time.Second)))
					synctest.Wait()
					want += strings.Repeat(form.alive, int(gap/every.Seconds()))
					if err := s.Send("x", 1); err != nil {
						t.Fatal(err)
					}
					want += form.value
				}
				if got := c.text(); got != want || c.silence() > every {
					t.Errorf("silent for %v: got\n%s\nwant\n%s", c.silence(), got, want)
				}
			})
		})
	}
}

// A stream starts when it is opened, with its first message or after the interval. An error before that has a status,
// and one after it is a message.
func TestStreamStarts(t *testing.T) {
	for name, form := range forms {
		for how, c := range map[string]struct {
			start func(*Stream)
			want  string // "": the stream has not started
		}{
			"nothing":      {func(*Stream) {}, ""},
			"a short wait": {func(*Stream) { time.Sleep(every - 1); synctest.Wait() }, ""},
			"a wait":       {func(*Stream) { time.Sleep(every); synctest.Wait() }, form.alive + form.failed},
			"opened":       {func(s *Stream) { s.Open(); s.Open() }, form.open + form.failed},
			"a message":    {func(s *Stream) { _ = s.Send("x", 1); s.Open() }, form.value + form.failed},
			"stopped":      {func(s *Stream) { s.Stop(); s.Open() }, ""},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newClient()
					a := NewResponse(w, time.Minute)
					s := form.make(a)
					c.start(s)
					s.Stop()
					Dialects(nil).Fail(a, httptest.NewRequest("POST", "/", nil), ErrorOf(BadRequest("no")))
					status, want := 200, c.want
					if want == "" {
						status, want = 400, "{\"error\":\"no\"}\n"
					}
					if w.Code != status || w.text() != want {
						t.Errorf("%d: %q, want %d: %q", w.Code, w.text(), status, want)
					}
					if header := w.Header().Get("X-Accel-Buffering"); (header == "no") != (status == 200) {
						t.Errorf("X-Accel-Buffering: %q", header)
					}
				})
			})
		}
	}
}

// Nothing follows the last message, nor Stop.
func TestStreamEnds(t *testing.T) {
	for name, form := range forms {
		for how, c := range map[string]struct {
			end  func(*Stream)
			want string
		}{
			"stop": {(*Stream).Stop, ""},
			"last": {func(s *Stream) { _ = s.Last("x", 1) }, form.value},
			"done": {func(s *Stream) { _ = s.Done() }, "data: [DONE]\n\n"},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newClient()
					s := form.make(NewResponse(w, time.Minute))
					c.end(s)
					time.Sleep(time.Hour)
					synctest.Wait()
					s.Stop()
					if w.text() != c.want {
						t.Errorf("%q, want %q", w.text(), c.want)
					}
				})
			})
		}
	}
	var none *Stream // a response that is not streamed
	none.Open()
	none.Stop()
}

// Stop waits for a keep-alive that a slow client does not read yet, so that the handler may go on alone.
func TestStopWaitsForKeepAlive(t *testing.T) {
	w, reached, free := newClient(), make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.reads = func() error { once.Do(func() { close(reached) }); <-free; return nil }
	s := NewLines(NewResponse(w, time.Minute), time.Nanosecond, func() any { return 0 })
	<-reached
	stopped := make(chan string)
	go func() { s.Stop(); stopped <- w.text() }()
	select {
	case <-stopped:
		t.Error("it did not wait")
	default:
	}
	close(free)
	if text := <-stopped; !strings.HasPrefix(text, "0\n") {
		t.Errorf("it stopped after %q", text)
	}
}

// A client that has disconnected gets no more keep-alives.
func TestKeepAliveFails(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, tries := newClient(), 0
				w.reads = func() error { tries++; return errors.New("connection reset by peer") }
				s := form.make(NewResponse(w, time.Minute))
				time.Sleep(time.Hour)
				synctest.Wait()
				if s.Stop(); tries != 1 {
					t.Errorf("%d writes", tries)
				}
			})
		})
	}
}

// Messages and keep-alives are whole, whoever sends them, and what Do and a keep-alive share needs no lock.
func TestStreamIsConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newClient()
		s, number := NewEvents(NewResponse(w, time.Minute), every, nil), 0
		count := func(send Send) error {
			number++
			return send("", number)
		}
		s.KeepAlive(count)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 50 {
					time.Sleep(every * time.Duration(i+1) / 4)
					s.Open()
					if err := s.Do(count); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		s.Stop()
		want := &strings.Builder{}
		for i := range number {
			fmt.Fprintf(want, "data: %d\n\n", i+1)
		}
		if got, ok := strings.CutPrefix(w.text(), comment); !ok || got != want.String() || number <= 400 {
			t.Errorf("%d messages: %s", number, got)
		}
	})
}
