package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A token that the hub refuses is left out for what everybody may read, with one warning that names where it is.
func TestRefusedToken(t *testing.T) {
	for _, c := range []struct {
		what   string
		status int
		name   string
		strict bool
		want   string
	}{
		{"public", 401, "hf.co/tiny/model", false, ""},
		{"forbidden", 403, "hf.co/tiny/model", false, ""},
		{"strict", 401, "hf.co/tiny/model", true, "refuses the token in /home/ann/token"},
		{"absent", 401, "hf.co/tiny/absent", false, "refuses the token in /home/ann/token"},
		{"strict, forbidden", 403, "hf.co/tiny/model", true, "no access"},
	} {
		h := start(t)
		h.Add("tiny/model", few())
		respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
			if r.Header.Get("Authorization") == "" {
				return false
			}
			w.Header().Set("X-Error-Message", "Invalid credentials: hf_old")
			w.WriteHeader(c.status)
			return true
		})
		var told []string
		opts := Options{Token: "hf_old", TokenFrom: "/home/ann/token", Strict: c.strict,
			Stall: time.Minute, Notice: func(s string) { told = append(told, s) }}
		err := readAll(t, client(h, opts), c.name)
		expect(t, c.what, err, c.want)
		text := fmt.Sprint(err, told)
		if c.want == "" != (len(told) == 1) || strings.Contains(text, "hf_old") ||
			!strings.Contains(text, "Invalid credentials: [hidden]") || strings.Contains(text, "HF_TOKEN") {
			t.Errorf("%s: %q, %v", c.what, told, err)
		}
	}
}

// A file that has no token is no error for what is public, and one with Strict.
func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "token")
	if err := os.WriteFile(bad, []byte("two\x01words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, bad} {
		for _, strict := range []bool{false, true} {
			o, err := Environment(func(name string) string { return map[string]string{"HF_TOKEN_PATH": path}[name] })
			if err != nil {
				t.Fatal(err)
			}
			h := start(t)
			h.Add("tiny/model", few())
			var told []string
			o.Strict, o.Stall, o.Notice = strict, time.Minute, func(s string) { told = append(told, s) }
			c := client(h, o)
			want := map[bool]string{true: path}[strict]
			expect(t, path, readAll(t, c, "hf.co/tiny/model"), want)
			if !strict && (len(told) != 1 || !strings.Contains(told[0], path)) {
				t.Errorf("%q", told)
			}
		}
	}
}

// A gated repository is named as such, also if the token is refused.
func TestRefusedTokenGated(t *testing.T) {
	h := start(t)
	h.Token = "hf_good"
	h.Add("tiny/gated", few()).Gate()
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		if r.Header.Get("Authorization") == "" {
			return false
		}
		w.Header().Set("X-Error-Message", "Invalid credentials")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	err := readAll(t, client(h, Options{Token: "hf_old", TokenFrom: "/home/ann/token"}), "hf.co/tiny/gated")
	expect(t, "gated", err, "gated, and the hub refuses the token in /home/ann/token")
}

// A rate limit without a hint is waited for some minutes, and not without end.
func TestLimitWithoutHint(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, _ bool) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	var waited time.Duration
	told := 0
	c := client(h, Options{Notice: func(string) { told++ }, Sleep: func(_ context.Context, d time.Duration) error {
		waited += d
		return nil
	}})
	err := readAll(t, c, "hf.co/tiny/model")
	if !errors.Is(err, ErrLimited) || waited < 5*time.Minute || waited > 13*time.Minute || told == 0 ||
		!strings.Contains(err.Error(), "set HF_TOKEN") {
		t.Error(waited, told, err)
	}
	err = readAll(t, client(h, Options{Token: "hf_x", TokenFrom: "/home/ann/token"}), "hf.co/tiny/model")
	if !errors.Is(err, ErrLimited) || strings.Contains(err.Error(), "HF_TOKEN") {
		t.Error(err)
	}
}
