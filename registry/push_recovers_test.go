package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/resume"
	"github.com/opencontainers/go-digest"
)

func TestPushFaults(t *testing.T) {
	s := rt.NewStore(t) // shared, because creating it takes longer than a push
	usual, _ := rt.PutModel(t, s, "usual", 3*64*kib+500, 7000, 100)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t, s, usual)
		})
	}
	for tenth := range 10 {
		for _, keep := range []bool{true, false} {
			f := fault{name: fmt.Sprintf("cut at %d0%%, kept: %v", tenth, keep), set: func(_ *testing.T, p *rt.Peer) {
				size := int64(3*64*kib + 500)
				at := size * int64(tenth) / 10
				p.Once("PATCH", rt.UploadRoute, rt.CutRequest(at%(64*kib), keep)).After(int(at / (64 * kib)))
			}}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.run(t, s, usual)
			})
		}
	}
}

func (f fault) run(t *testing.T, s *store.Store, name manifest.Name) {
	p := rt.New(t)
	if f.sizes != nil {
		name, _ = rt.PutModel(t, s, strings.NewReplacer(" ", "-", ",", "").Replace(f.name), f.sizes...)
	}
	if f.chunk == 0 {
		f.chunk = 64 * kib
	}
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	want := raw.Descriptor.Digest
	f.set(t, p)
	var mu sync.Mutex
	var waits []time.Duration
	var last = map[digest.Digest]Event{}
	c := newClient(t, func(o *Options) {
		o.Concurrency, o.Connection.Attempts = 2, 12
		o.Events = func(e Event) { last[e.Digest] = e }
	})
	c.conn.Sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
		return context.Cause(ctx)
	}
	dst := p.Name("team/m:v1")
	got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: f.chunk, Stall: f.stall})
	if f.check != nil {
		f.check(t, p, waits)
	}
	if f.want != nil || f.text != "" {
		if err == nil || f.want != nil && f.want != errAny && !errors.Is(err, f.want) ||
			!strings.Contains(err.Error(), f.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %v with %q in one line", err, f.want, f.text)
		}
		if p.Manifest("team/m", "v1") != nil {
			t.Error("the manifest is there")
		}
		return
	}
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s; requests:\n%s", got, err, want, strings.Join(p.Log(), "\n"))
	}
	p.Check("team/m", "v1", want)
	received, _ := p.Traffic()
	switch most := f.maxResent; {
	case most == 0 && received-total(t, s, name) > f.chunk, most > 0 && received-total(t, s, name) > most:
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if open := p.OpenSessions(); len(open) > 0 && !f.mayLeaveOpen {
		t.Errorf("open sessions: %v; requests:\n%s", open, strings.Join(p.Log(), "\n"))
	}
	for d, e := range last {
		key := resume.Key(dst.Host, dst.Path, d)
		if _, err := os.Stat(filepath.Join(s.Root(), "ingest", "push-"+key.Encoded())); err == nil {
			t.Errorf("the session record of %s is left", d)
		}
		if d != "" && e.Kind != Done && e.Kind != Present && e.Kind != Mounted {
			t.Errorf("the last event of %s is %+v", d, e)
		}
	}
}

func TestPushDamaged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(path string) error
		want   error
	}{
		{"missing", os.Remove, manifest.ErrBlobMissing},
		{"cut", func(path string) error { return os.WriteFile(path, rt.Noise(0, 10), 0o644) }, manifest.ErrCorrupt},
		{"altered", func(path string) error { return os.WriteFile(path, rt.Noise(9, 3000), 0o644) }, manifest.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, s := rt.New(t), rt.NewStore(t)
			name, _ := rt.PutModel(t, s, "m", 3000)
			path := s.BlobPath(digest.FromBytes(rt.Noise(0, 3000)))
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if p.Manifest("m", "latest") != nil {
				t.Error("the manifest is there")
			}
			// The store need not have what the registry has.
			p.PutBlob("m", rt.Noise(0, 3000))
			if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); err != nil {
				t.Errorf("with the blob at the registry: %v", err)
			}
		})
	}
}

// interrupt pushes until at bytes of a blob are sent, then cancels the push.
func interrupt(t *testing.T, s *store.Store, name, dst manifest.Name, opts PushOptions, at int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Moved && e.Bytes >= at {
				cancel()
			}
		}
	})
	if _, err := c.Push(ctx, s, name, dst, opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted push: %v", err)
	}
}

func TestPushResumes(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 20*mib)
	opts := PushOptions{ChunkSize: 2 * mib}
	interrupt(t, s, name, p.Name("m"), opts, 9*mib)
	if left := leftovers(t, s); len(left) != 1 {
		t.Fatalf("left of an interrupted push: %v", left)
	}
	var begun int64
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Begin {
				begun = max(begun, e.Bytes)
			}
		}
	})
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), opts); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if received, _ := p.Traffic(); received-total(t, s, name) > opts.ChunkSize {
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if begun < 6*mib {
		t.Errorf("resumed at %d", begun)
	}
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPushSessionLost: the registry dropped or refuses the session of an earlier run, or received the blob from another
// client.
func TestPushSessionLost(t *testing.T) {
	for name, meanwhile := range map[string]func(p *rt.Peer){
		"forgotten": (*rt.Peer).ForgetUploads,
		"refused": func(p *rt.Peer) {
			p.On("GET", rt.UploadRoute, rt.RefuseWith(http.StatusForbidden, "DENIED"))
		},
		"present": func(p *rt.Peer) { p.ForgetUploads(); p.PutBlob("m", rt.Noise(0, 20*mib)) },
	} {
		t.Run(name, func(t *testing.T) {
			p, s := rt.New(t), rt.NewStore(t)
			model, want := rt.PutModel(t, s, "m", 20*mib)
			opts := PushOptions{ChunkSize: 4 * mib}
			interrupt(t, s, model, p.Name("m"), opts, 9*mib)
			meanwhile(p)
			if _, err := newClient(t).Push(t.Context(), s, model, p.Name("m"), opts); err != nil {
				t.Fatal(err)
			}
			p.Check("m", "latest", want)
			if left := leftovers(t, s); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
