package manifest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

func TestSession(t *testing.T) {
	s := newStore(t)
	key := digest.FromString("host, repository, blob")
	open := func() *Session {
		t.Helper()
		x, err := s.OpenSession(key)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := open()
	if b, err := x.Read(); b != nil || err != nil {
		t.Errorf("a new session reads %q, %v", b, err)
	}
	if _, err := s.OpenSession(key); !errors.Is(err, ErrBusy) {
		t.Errorf("open twice: %v", err)
	}
	s.DropSession(key) // has no effect on an open session
	x.Close()
	if left := files(t, s, ingestDir); len(left) > 0 {
		t.Errorf("a session without state leaves %v", left)
	}

	x = open()
	for _, text := range []string{"first", "second"} {
		if err := x.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(x.path(sessionState))
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the state has mode %v (%v)", info.Mode(), err)
	}
	x.Close()
	x = open()
	if b, err := x.Read(); string(b) != "second" || err != nil {
		t.Errorf("reopened, it reads %q, %v", b, err)
	}
	x.Close()
	open().Close() // keeps the state although it was not read
	x = open()
	x.Remove()
	x.Remove()
	x.Close()
	if left := files(t, s, ingestDir); len(left) > 0 {
		t.Errorf("a session that ended leaves %v", left)
	}
}

// Collections keep unfinished upload sessions for IngestAge.
func TestSessionsAge(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "m", "text")
	note := func(name string, written bool) {
		t.Helper()
		x, err := s.OpenSession(digest.FromString(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
		x.Close()
		if !written {
			if err := os.Remove(x.path(sessionState)); err != nil {
				t.Fatal(err)
			}
		}
	}
	note("old", true)
	note("young", true)
	note("empty", false)
	old := s.path(ingestDir, sessionPrefix+digest.FromString("old").Encoded(), sessionState)
	if err := os.Chtimes(old, noon, noon.Add(-IngestAge-1)); err != nil {
		t.Fatal(err)
	}
	young := s.path(ingestDir, sessionPrefix+digest.FromString("young").Encoded(), sessionState)
	if err := os.Chtimes(young, noon, noon.Add(-IngestAge+1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), mustName(t, "m")); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s, ingestDir); len(left) != 1 ||
		!strings.HasSuffix(left[0], digest.FromString("young").Encoded()) {
		t.Errorf("left: %v, want the young one", left)
	}
}

func TestHomes(t *testing.T) {
	s := newStore(t)
	d := putModel(t, s, "m", "text")
	other := putModel(t, s, "reg.example/team/m:v1", "other")
	putModel(t, s, "other.example/team/m:v1", "third")
	homes := func(host string) string {
		t.Helper()
		list, err := s.Homes(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, h := range list {
			which := map[digest.Digest]string{d: "m", other: "other"}[h.Manifest]
			text = append(text, h.Host+"/"+h.Path+"="+which)
		}
		return strings.Join(text, " ")
	}
	if got := homes("reg.example"); got != "reg.example/team/m=other" {
		t.Errorf("homes: %s", got)
	}
	for _, to := range []string{"reg.example/a", "reg.example:5000/b", "reg.example/c/d", "reg.example/a"} {
		if err := s.NotePushed(t.Context(), mustName(t, "m"), mustName(t, to)); err != nil {
			t.Fatal(err)
		}
	}
	if got := homes("reg.example"); got != "reg.example/c/d=m reg.example/a=m reg.example/team/m=other" {
		t.Errorf("homes: %s", got)
	}
	if got := homes("reg.example:5000"); got != "reg.example:5000/b=m" {
		t.Errorf("homes: %s", got)
	}
	for i := range 2 * maxPushed {
		if err := s.NotePushed(t.Context(), mustName(t, "m"), mustName(t, "reg.example/x"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(strings.Fields(homes("reg.example"))); n != maxPushed+1 {
		t.Errorf("%d homes", n)
	}
	if err := s.NotePushed(t.Context(), mustName(t, "absent"), mustName(t, "reg.example/a")); err != nil {
		t.Errorf("a model that does not exist: %v", err)
	}
	checkStore(t, s)
}
