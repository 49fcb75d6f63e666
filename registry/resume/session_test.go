package resume

import (
	"net/url"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

func TestRecords(t *testing.T) {
	s := rt.NewStore(t)
	d := digest.FromString("blob")
	for _, tt := range []struct {
		at         string
		begun, now string
		want       bool
	}{
		{"https://reg.example/up", "https://reg.example", "https://reg.example", true},
		{"https://cdn.example/up", "https://reg.example", "https://reg.example", true},
		{"http://reg.example/up", "http://reg.example", "http://reg.example", true},
		{"https://cdn.example/up", "http://reg.example", "http://reg.example", true},
		{"http://reg.example/up", "http://reg.example", "https://reg.example", false},
		{"https://reg.example/up", "http://reg.example", "https://reg.example", false},
		{"https://reg.example/up", "https://reg.example", "http://reg.example", false},
		// ingot itself writes no such record
		{"http://reg.example/up", "https://reg.example", "https://reg.example", false},
		{"https://reg.example/up", "https://reg.example", "https://reg.example:5000", false},
		{"ftp://reg.example/up", "http://reg.example", "http://reg.example", false},
	} {
		x := Open(s, d)
		if x == nil {
			t.Fatal("no record")
		}
		u, err := url.Parse(tt.at)
		if err != nil {
			t.Fatal(err)
		}
		x.Save(u, Record{Registry: tt.begun, Digest: d})
		if at, _ := x.Load(tt.now); (at != nil) != tt.want {
			t.Errorf("%s, opened at %s: resumed %v at %s", tt.at, tt.begun, at, tt.now)
		}
		x.Remove()
	}
}

// TestForget: the record of a lost session is not kept, unless there is another session.
func TestForget(t *testing.T) {
	s := rt.NewStore(t)
	d := digest.FromString("blob")
	at, _ := url.Parse("https://reg.example/up")
	n := Record{Registry: "https://reg.example", Digest: d}
	for _, kept := range []bool{false, true} {
		x := Open(s, d)
		x.Save(at, n)
		x.Forget()
		if kept {
			x.Save(at, n)
		}
		x.Close()
		x = Open(s, d)
		if at, _ := x.Load(n.Registry); (at != nil) != kept {
			t.Errorf("kept: %v, want %v", at != nil, kept)
		}
		x.Remove()
	}
}
