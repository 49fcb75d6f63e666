package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// follow runs follow as the server's handler does, and gives the answer.
func (f *fixture) follow(w http.ResponseWriter, do func(ctx context.Context, tell func(progressJSON)) error) {
	a := &answer{ResponseWriter: w}
	r := httptest.NewRequest("POST", "/api/pull", nil)
	defer f.recovered(a, r)
	if err := f.Server.follow(a, r, nil, do); err != nil {
		f.Server.fail(a, r, err)
	}
}

func TestFollow(t *testing.T) {
	f := serve(t, nil)
	for name, c := range map[string]struct {
		do     func(ctx context.Context, tell func(progressJSON)) error
		status int
		want   string
	}{
		"nothing to tell": {func(context.Context, func(progressJSON)) error { return nil }, 200, `{"status":"success"}` + "\n"},
		"an error first":  {func(context.Context, func(progressJSON)) error { return badRequest("no") }, 400, `{"error":"no"}` + "\n"},
		"an error later": {func(_ context.Context, tell func(progressJSON)) error {
			tell(progressJSON{Status: "a"})
			return badRequest("no")
		}, 200, `{"status":"a"}` + "\n" + `{"error":"no"}` + "\n"},
		"a panic": {func(_ context.Context, tell func(progressJSON)) error {
			tell(progressJSON{Status: "a"})
			panic("out of range")
		}, 200, `{"status":"a"}` + "\n" + `{"error":"the request failed by a fault of the program: out of range"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			f.follow(w, c.do)
			if got := w.Body.String(); w.Code != c.status || got != c.want {
				t.Errorf("%d: %q, want %d: %q", w.Code, got, c.status, c.want)
			}
		})
	}
}

// stuck is a client that reads nothing until it is let go, and then perhaps leaves.
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

// A client that does not read holds nothing up, and hears in the end how it stands; one that leaves ends what it asked for.
func TestFollowSlowly(t *testing.T) {
	f := serve(t, nil)
	for _, leaves := range []bool{false, true} {
		w := &stuck{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{}), leaves}
		f.follow(w, func(ctx context.Context, tell func(progressJSON)) error {
			tell(progressJSON{Status: "begun"})
			<-w.reached
			for i := range 1000 {
				tell(progressJSON{Status: fmt.Sprintf("pulling %d", i%2), Digest: fmt.Sprint(i % 2), Completed: int64(i)})
			}
			close(w.free)
			if leaves {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		want := `{"status":"begun"} {"status":"pulling 0","digest":"0","completed":998} {"status":"pulling 1","digest":"1","completed":999} {"status":"success"} `
		if leaves {
			want = ""
		}
		if got := strings.ReplaceAll(w.Body.String(), "\n", " "); got != want {
			t.Errorf("leaves %v: the client hears %s, want %s", leaves, got, want)
		}
	}
}
