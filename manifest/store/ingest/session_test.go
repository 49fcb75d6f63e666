package ingest_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func TestSession(t *testing.T) {
	s := storetest.NewStore(t)
	key := digest.FromString("host, repository, blob")
	open := func() *ingest.Session {
		t.Helper()
		x, err := ingest.OpenSession(s, key)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := open()
	if b, err := x.Read(); b != nil || err != nil {
		t.Errorf("a new session reads %q, %v", b, err)
	}
	if _, err := ingest.OpenSession(s, key); !errors.Is(err, manifest.ErrBusy) {
		t.Errorf("open twice: %v", err)
	}
	ingest.DropSession(s, key) // has no effect on an open session
	x.Close()
	if left := storetest.Files(t, s, store.IngestDir); len(left) > 0 {
		t.Errorf("a session without state leaves %v", left)
	}

	x = open()
	for _, text := range []string{"first", "second"} {
		if err := x.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(x.Path(ingest.SessionState))
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
	if left := storetest.Files(t, s, store.IngestDir); len(left) > 0 {
		t.Errorf("a session that ended leaves %v", left)
	}
}

// Collections keep unfinished upload sessions for [ingest.Age].
func TestSessionsAge(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "m", "text")
	note := func(name string, written bool) {
		t.Helper()
		x, err := ingest.OpenSession(s, digest.FromString(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
		x.Close()
		if !written {
			if err := os.Remove(x.Path(ingest.SessionState)); err != nil {
				t.Fatal(err)
			}
		}
	}
	note("old", true)
	note("young", true)
	note("empty", false)
	old := s.Path(store.IngestDir, ingest.SessionPrefix+digest.FromString("old").Encoded(), ingest.SessionState)
	if err := os.Chtimes(old, storetest.Noon, storetest.Noon.Add(-ingest.Age-1)); err != nil {
		t.Fatal(err)
	}
	young := s.Path(store.IngestDir, ingest.SessionPrefix+digest.FromString("young").Encoded(), ingest.SessionState)
	if err := os.Chtimes(young, storetest.Noon, storetest.Noon.Add(-ingest.Age+1)); err != nil {
		t.Fatal(err)
	}
	if err := collect.Remove(t.Context(), s, storetest.MustName(t, "m")); err != nil {
		t.Fatal(err)
	}
	if left := storetest.Files(t, s, store.IngestDir); len(left) != 1 ||
		!strings.HasSuffix(left[0], digest.FromString("young").Encoded()) {
		t.Errorf("left: %v, want the young one", left)
	}
}

func TestHomes(t *testing.T) {
	s := storetest.NewStore(t)
	d := storetest.PutModel(t, s, "m", "text")
	other := storetest.PutModel(t, s, "reg.example/team/m:v1", "other")
	storetest.PutModel(t, s, "other.example/team/m:v1", "third")
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
		if err := s.NotePushed(t.Context(), storetest.MustName(t, "m"), storetest.MustName(t, to)); err != nil {
			t.Fatal(err)
		}
	}
	if got := homes("reg.example"); got != "reg.example/c/d=m reg.example/a=m reg.example/team/m=other" {
		t.Errorf("homes: %s", got)
	}
	if got := homes("reg.example:5000"); got != "reg.example:5000/b=m" {
		t.Errorf("homes: %s", got)
	}
	for i := range 2 * index.MaxPushed {
		if err := s.NotePushed(t.Context(), storetest.MustName(t, "m"),
			storetest.MustName(t, "reg.example/x"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(strings.Fields(homes("reg.example"))); n != index.MaxPushed+1 {
		t.Errorf("%d homes", n)
	}
	if err := s.NotePushed(t.Context(), storetest.MustName(t, "absent"),
		storetest.MustName(t, "reg.example/a")); err != nil {
		t.Errorf("a model that does not exist: %v", err)
	}
	storetest.CheckStore(t, s)
}
