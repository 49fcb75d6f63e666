package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// runInChild runs a test of this package in a child process with additional environment variables, and returns its
// output.
func runInChild(t *testing.T, test string, env ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

// TestRetryAfterIsObeyed: requests wait for the Retry-After of a registry or token server. One that is too long is an
// error.
func TestRetryAfterIsObeyed(t *testing.T) {
	var busy string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch at := strings.Trim(req.URL.Path, "/"); {
		case busy != "" && at == busy:
			busy = ""
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case at == "token":
			fmt.Fprint(w, `{"token":"t"}`)
		case req.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+req.Host+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(at, "later"):
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			fmt.Fprint(w, rt.SmallManifest(""))
		}
	}))
	defer s.Close()
	for _, what := range []string{"v2", "token", "v2/a/model/manifests/tag"} {
		busy = what
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
		var slept []time.Duration
		c.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
		r := repositoryOf(t, c, strings.TrimPrefix(s.URL, "http://")+"/a/model", Pull)
		if _, err := r.GetManifest(context.Background(), "tag"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if len(slept) != 1 || slept[0] < 7*time.Second || slept[0] > 10*time.Second {
			t.Errorf("%s: slept %v", what, slept)
		}
		_, err := r.GetManifest(context.Background(), "later")
		var status *StatusError
		// 3600 could be milliseconds: the request is sent once more after them.
		if !errors.As(err, &status) || len(slept) != 2 || slept[1] > 5*time.Second ||
			!strings.Contains(err.Error(), "1h0m0s") {
			t.Errorf("%s: %v after delays of %v", what, err, slept)
		}
	}
}

// TestRetryBudget: the budget counts consecutive failures. Progress restores it, and a spent one returns the last
// error.
func TestRetryBudget(t *testing.T) {
	c := authClient(t, Options{Attempts: 3})
	a := &Attempts{c: c, limit: c.opts.Attempts}
	failure := &sendError{err: io.ErrUnexpectedEOF}
	var got []bool
	for i := range 8 {
		if i == 2 || i == 4 {
			a.Reset()
		}
		err := a.Backoff(context.Background(), failure)
		if err != nil && err != error(failure) {
			t.Fatal(err)
		}
		got = append(got, err == nil)
	}
	if diff := cmp.Diff([]bool{true, true, true, true, true, true, false, false}, got); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("somebody else failed")
	cancel(why)
	if err := (&Attempts{c: c, limit: c.opts.Attempts}).Backoff(ctx, failure); err != why {
		t.Errorf("after the context was canceled: %v", err)
	}
}

func TestDelays(t *testing.T) {
	c := authClient(t, Options{Attempts: 1000})
	a := &Attempts{c: c, limit: c.opts.Attempts}
	seen := map[time.Duration]bool{}
	for n := 1; n < 500; n++ {
		a.failed = n
		mid := min(firstDelay<<min(n-1, 10), maxDelay)
		d := a.delay(io.EOF)
		if d < mid/2 || d >= mid*3/2 {
			t.Fatalf("delay %d is %s", n, d)
		}
		seen[d] = true
	}
	if len(seen) < 400 {
		t.Errorf("%d delays in 500", len(seen))
	}
}

func TestWarnings(t *testing.T) {
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, v := range list {
			w.Header().Add("Warning", v)
		}
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	list = []string{`299 - "goes away \"soon\""`, `299 - "goes away \"soon\""`, `299 - "two` + "\t" + `words"`,
		`299 - unquoted`, `199 - "other"`, `299 proxy "other"`, ``}
	var got []string
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), Warn: func(of string, err error) {
		if of == host {
			got = append(got, err.Error())
		}
	}})
	r := repositoryOf(t, c, host+"/a/model", Pull)
	for range 3 {
		r.askFor("GET", "blobs/x")
	}
	if diff := cmp.Diff([]string{`goes away "soon"`, "two words"}, got); diff != "" {
		t.Error(diff)
	}
	for i := range 100 {
		list = []string{fmt.Sprintf(`299 - "number %d"`, i)}
		r.askFor("GET", "blobs/x")
	}
	if len(got) != maxWarnings {
		t.Errorf("%d warnings", len(got))
	}
}
