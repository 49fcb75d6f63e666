package ollama

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/server/wire"
)

// progressOf runs streamProgress as a handler does.
func progressOf(w http.ResponseWriter, do func(ctx context.Context, report reporter) error) {
	a := wire.NewResponse(w, 0)
	r := httptest.NewRequest("POST", "/api/pull", nil)
	fail := func(err error) { wire.Dialects(nil).Fail(a, r, wire.ErrorOf(err)) }
	defer func() {
		if p := recover(); p != nil {
			fail(fmt.Errorf("internal error: %v", p))
		}
	}()
	if err := streamProgress(a, r, progressStream{first: "pulling manifest", every: 3 * time.Second}, do); err != nil {
		fail(err)
	}
}

func TestStreamProgress(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(ctx context.Context, report reporter) error
		status int
		want   string
	}{
		"no progress": {func(context.Context, reporter) error { return nil }, 200,
			`{"status":"success"}` + "\n"},
		"error before a report": {func(context.Context, reporter) error { return wire.BadRequest("no") }, 400,
			`{"error":"no"}` + "\n"},
		"error after a report": {func(_ context.Context, report reporter) error {
			report(progressJSON{Status: "a"})
			return wire.BadRequest("no")
		}, 200, `{"status":"a"}` + "\n" + `{"error":"no"}` + "\n"},
		"panic": {func(_ context.Context, report reporter) error {
			report(progressJSON{Status: "a"})
			panic("out of range")
		}, 200, `{"status":"a"}` + "\n" + `{"error":"internal error: out of range"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			progressOf(w, c.do)
			if got := w.Body.String(); w.Code != c.status || got != c.want {
				t.Errorf("%d: %q, want %d: %q", w.Code, got, c.status, c.want)
			}
		})
	}
}

// While there is nothing to report, the last status is sent again. If there was none yet, the stream starts with one.
func TestStreamProgressWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		progressOf(w, func(_ context.Context, report reporter) error {
			time.Sleep(7 * time.Second)
			report(progressJSON{Status: "a"})
			report(progressJSON{Status: "b", Digest: "c", Total: 2, Completed: 1})
			time.Sleep(4 * time.Second)
			return errors.New("no")
		})
		want := strings.Repeat(`{"status":"pulling manifest"} `, 2) + `{"status":"a"} ` +
			strings.Repeat(`{"status":"b","digest":"c","total":2,"completed":1} `, 2) + `{"error":"no"} `
		if got := strings.ReplaceAll(w.Body.String(), "\n", " "); w.Code != 200 || got != want {
			t.Errorf("%d: got %s, want %s", w.Code, got, want)
		}
	})
}

// stuck is a client that does not read until free is closed, and then disconnects if leaves is set.
type stuck struct {
	*httptest.ResponseRecorder
	reached, free chan struct{}
	leaves        bool
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case s.reached <- struct{}{}:
	default:
	}
	<-s.free
	if s.leaves {
		return 0, errors.New("connection reset by peer")
	}
	return s.ResponseRecorder.Write(p)
}

// A client that does not read does not slow the operation down, and gets the latest progress later. If a client
// disconnects, its operation is cancelled.
func TestStreamProgressSlowly(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := &stuck{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{}), leaves}
		progressOf(w, func(ctx context.Context, report reporter) error {
			report(progressJSON{Status: "begun"})
			<-w.reached
			for i := range 1000 {
				report(progressJSON{Status: fmt.Sprintf("pulling %d", i%2), Digest: fmt.Sprint(i % 2), Completed: int64(i)})
			}
			close(w.free)
			if leaves {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		want := `{"status":"begun"} {"status":"pulling 0","digest":"0","completed":998} ` +
			`{"status":"pulling 1","digest":"1","completed":999} {"status":"success"} `
		if leaves {
			want = ""
		}
		if got := strings.ReplaceAll(w.Body.String(), "\n", " "); got != want {
			t.Errorf("leaves %v: got %s, want %s", leaves, got, want)
		}
	}
}
