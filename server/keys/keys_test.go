package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

// TestFile checks what a line may have, and that each fault is one line that names file and line and not the key.
func TestFile(t *testing.T) {
	longest := strings.Repeat("k", limits.APIKey)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "n%d k%d\n", i, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text, want string // the keys' names and limits, or the fault
	}{
		"one key":       {"s3cret\n", "default 0 0"},
		"no line end":   {"s3cret", "default 0 0"},
		"Windows":       {"s3cret\r\n", "default 0 0"},
		"mark":          {"\ufeffs3cret\n", "default 0 0"},
		"spaces":        {"  s3cret \t\n", "default 0 0"},
		"name":          {"alice s3cret\nbob-2@corp.example\ts3cret2\n", "alice 0 0, bob-2@corp.example 0 0"},
		"comments":      {"# mine\n\n  # more\nalice s3cret\n", "alice 0 0"},
		"limits":        {"alice s3cret requests=4 tokens_per_minute=20000\n", "alice 4 20000"},
		"only a limit":  {"s3cret tokens_per_minute=5\nbob s3cret2 requests=1", "default 0 5, bob 1 0"},
		"several plain": {"s3cret\ns3cret2\n", "default 0 0, default2 0 0"},
		"longest":       {longest + "\n", "default 0 0"},
		"most":          {many(limits.APIKeys), ""},

		"empty":            {"", "FILE has no key"},
		"only comments":    {"# s3cret\n", "FILE has no key"},
		"too long":         {longest + "s3cret\n", "FILE:1: the key is longer than 4096 bytes"},
		"much too long":    {"\n" + strings.Repeat("s3cret", 1<<18), "FILE:2: the line is longer than 4352 bytes"},
		"too many":         {many(limits.APIKeys + 1), "FILE:1001: more than 1000 keys"},
		"too many lines":   {strings.Repeat("\n", 10*limits.APIKeys) + "s3cret", "FILE:10001: more than 10000 lines"},
		"name twice":       {"alice s3cret\nalice s3cret2", "FILE:2: the name alice is that of line 1"},
		"key twice":        {"alice s3cret\n\nbob s3cret", "FILE:3: the key is that of line 1"},
		"a phrase":         {"s3cret with words", "FILE:1: the line must be [NAME] KEY"},
		"unknown option":   {"alice s3cret cost=4", "FILE:1: the line must be [NAME] KEY"},
		"misspelt":         {"s3cret request=4", "FILE:1: the line must be [NAME] KEY"},
		"no number":        {"alice s3cret requests=", "FILE:1: requests must be given once, with a number from 1"},
		"zero":             {"alice s3cret requests=0", "FILE:1: requests must be given once, with a number from 1"},
		"negative":         {"alice s3cret requests=-1", "FILE:1: the line must be [NAME] KEY"},
		"too large":        {"alice s3cret tokens_per_minute=99999999999999999999", "FILE:1: tokens_per_minute must be"},
		"metrics":          {"alice s3cret metrics=2", "FILE:1: metrics must be given once, with a number from 1 to 1"},
		"twice":            {"alice s3cret requests=1 requests=2", "FILE:1: requests must be given once"},
		"hostile name":     {"\"a s3cret", "FILE:1: the name must have at most 64"},
		"long name":        {strings.Repeat("a", 65) + " s3cret", "FILE:1: the name must have at most 64"},
		"escape":           {"s3cret\x1b[2J", "FILE:1: the key contains control characters"},
		"not ASCII":        {"schlüssel", "FILE:1: the key contains control characters or non-ASCII characters"},
		"second is broken": {"alice s3cret\nbob a b c", "FILE:2: the line must be [NAME] KEY"},
	} {
		list, err := parse("FILE", strings.NewReader(c.text))
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprintf("%s %d %d", e.name, e.limit.Requests, e.limit.TokensPerMinute))
			if c.want == "" {
				got = nil
			}
		}
		if err != nil {
			got = []string{err.Error()}
			if strings.Contains(err.Error(), "s3cret") || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%s: %v", name, err)
			}
		}
		text := strings.Join(got, ", ")
		refused := strings.HasPrefix(c.want, "FILE")
		if (err != nil) != refused || !strings.HasPrefix(text, c.want) || err == nil && text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// TestFirst checks what a client reads of the file: the first key, whatever follows.
func TestFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	for text, want := range map[string]string{
		"k\n": "k", "# x\nalice k requests=1\nbob a b c\n": "k", "k\n\x00": "k", "": "", "\n": "", "a b c": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, mode, err := First(path)
		if got != want && err == nil || (err != nil) != (want == "") || err == nil && mode.Perm() != 0o640 {
			t.Errorf("%q: %q, %v, %v", text, got, mode, err)
		}
	}
	if _, _, err := First(path + "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestFind checks that a request's key is found among all, and what it has used stays when the file changes.
func TestFind(t *testing.T) {
	list := []entry{{sum: sha256.Sum256([]byte("ka")), name: "alice"}, {sum: sha256.Sum256([]byte("kb")), name: "bob"}}
	k := &Keys{list: func() []entry { return list }}
	for given, want := range map[[2]string]string{
		{"ka", ""}: "alice", {"", "kb"}: "bob", {"none", "kb"}: "bob", {"kb", "none"}: "bob", {"k", "kaa"}: "", {"", ""}: "",
	} {
		if got := k.Find(given[:]...).String(); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	k.Find("ka").Charge(3, 4)
	k.Find("ka").Count(200)
	list = []entry{{sum: sha256.Sum256([]byte("other")), name: "alice", limit: Limit{Requests: 1}}}
	if k.Find("ka") != nil || k.Find("kb") != nil {
		t.Error("a key that was removed is accepted")
	}
	k.Find("other").Charge(1, 0)
	if s := k.States(); len(s) != 2 || s[0].Name != "alice" || s[0].Prompt != 4 || s[0].Generated != 4 ||
		s[0].Requests[200] != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := k.Find("other").Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Find("other").Begin(); !errors.Is(err, ErrRequests) {
		t.Errorf("the new limit: %v", err)
	}
	if one := One("x"); one.Find("x").String() != Default || one.Find("y") != nil {
		t.Error("a single key")
	}
}

// TestReload checks that a changed file counts, and that a broken one does not.
func TestReload(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "keys"), ""
	write := func(text string, at time.Time) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("alice first\n", time.Now().Add(-time.Hour))
	k, err := Open(path, func(format string, args ...any) { log += fmt.Sprintf(format, args...) + "\n" })
	if err != nil {
		t.Fatal(err)
	}
	eventually := func(key string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); (k.Find(key) != nil) != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s is accepted: %v; log %s", key, !want, log)
			}
		}
	}
	write("alice second\n", time.Now().Add(-time.Minute))
	eventually("second", true)
	eventually("first", false)
	write("alice third and more\n", time.Now())
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(log, path+":1: the line must be"); {
		if k.Find("second") == nil || time.Now().After(deadline) {
			t.Fatalf("log %s", log)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if strings.Contains(log, "third") || k.Find("second") == nil {
		t.Errorf("log %s", log)
	}
}

// TestLimits checks the limits with a clock of the test's.
func TestLimits(t *testing.T) {
	now := time.Unix(1000, 0)
	u := newUsage(Limit{})
	u.now = func() time.Time { return now }
	u.set(Limit{Requests: 2, TokensPerMinute: 600})
	k := &Key{"alice", "alice", u}
	begin := func(want error, after time.Duration) (done func()) {
		t.Helper()
		done, err := k.Begin()
		if wait, _ := runtime.RetryAfter(err); !errors.Is(err, want) || wait.Round(10*time.Millisecond) != after {
			t.Errorf("%v after %v, want %v after %v", err, wait, want, after)
		}
		return done
	}
	first, second := begin(nil, 0), begin(nil, 0)
	begin(ErrRequests, time.Second)
	first()
	first() // twice is once
	third := begin(nil, 0)
	begin(ErrRequests, time.Second)
	second()
	third()

	k.Charge(500, 99)
	begin(nil, 0)() // one token is left
	k.Charge(0, 1)
	begin(ErrTokens, 100*time.Millisecond)
	k.Charge(0, 600) // a request that was admitted goes on
	begin(ErrTokens, 60*time.Second+100*time.Millisecond)
	now = now.Add(60 * time.Second)
	begin(ErrTokens, 100*time.Millisecond)
	now = now.Add(100 * time.Millisecond)
	begin(nil, 0)()
	now = now.Add(24 * time.Hour) // no more than a minute's are saved
	k.Charge(600, 0)
	begin(ErrTokens, 100*time.Millisecond)
	now = now.Add(-time.Hour) // the clock was set back
	begin(ErrTokens, 100*time.Millisecond)

	var nobody *Key
	done, err := nobody.Begin()
	if err != nil {
		t.Fatal(err)
	}
	done()
	nobody.Charge(1, 1)
	nobody.Count(200)
	if From(With(context.Background(), nobody)) != nil || From(With(context.Background(), k)) != k {
		t.Error("the key of a context")
	}
}

// TestAtOnce checks that concurrent requests never exceed a limit.
func TestAtOnce(t *testing.T) {
	k := &Key{"alice", "alice", newUsage(Limit{Requests: 3})}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 200 {
				done, err := k.Begin()
				if err != nil {
					continue
				}
				k.use.mu.Lock()
				if k.use.running > 3 {
					t.Errorf("%d run", k.use.running)
				}
				k.use.mu.Unlock()
				k.Charge(1, 1)
				done()
			}
		})
	}
	wg.Wait()
	if k.use.running != 0 {
		t.Errorf("%d run at the end", k.use.running)
	}
}
