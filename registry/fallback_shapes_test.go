package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// TestFallbackMountFrom: where a mount from a repository is refused, its blobs are copied.
func TestFallbackMountFrom(t *testing.T) {
	s := rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 70000, 7000, 100)
	for way, set := range mounts(true, 0, 200, 201, 202, 400, 401, 403, 404, 405, 500, 503) {
		for _, both := range []bool{false, true} {
			p, c := rt.New(t), copyClient(t)
			p.Serve(s, name, "team/m", "v1")
			set(p)
			if both {
				p.Allow = func(x *rt.Exchange) bool {
					if x.Route != rt.BeginRoute || x.R.URL.Query().Has("from") {
						return true
					}
					x.Fail(403, "DENIED")
					return false
				}
			}
			_, err := c.Copy(t.Context(), p.Name("team/m:v1"), p.Name("other/m:v1"), PushOptions{})
			switch {
			case both && (!errors.Is(err, remote.ErrUnauthorized) || len(p.Log()) > 40):
				t.Errorf("%s, and uploads: %v after %d requests", way, err, len(p.Log()))
			case !both && err != nil:
				t.Errorf("%s: %v", way, err)
			case !both:
				p.Check("other/m", "v1", want)
			}
		}
	}
}

// TestFallbackOnce: the transfers of a push that meet one limit at a time find it out together.
func TestFallbackOnce(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	sizes := []int{5 * mib, 5*mib + 1, 5*mib + 2, 5*mib + 3, 5*mib + 4, 5*mib + 5}
	name, want := rt.PutModel(t, s, "m", sizes...)
	p.On("", rt.UploadRoute, above(4*mib, func(x *rt.Exchange) {
		_, _ = io.Copy(io.Discard, x.R.Body)
		time.Sleep(50 * time.Millisecond)
		rt.Respond(413)(x)
	}))
	c := newClient(t, func(o *Options) { o.Concurrency = len(sizes) })
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: 8 * mib}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if got := repositoryAt(t, c, p.Host()+"/m", remote.Push).Abilities().MaxBody; got != 5*mib/2 {
		t.Errorf("requests have at most %d bytes", got)
	}
}

// TestPushLimitedByCode: a registry that says with another status than 429 that requests are limited refuses nothing.
func TestPushLimitedByCode(t *testing.T) {
	s := rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 3*64*kib, 100)
	for _, step := range []struct {
		method string
		about  rt.Route
	}{{"PATCH", rt.UploadRoute}, {"PUT", rt.UploadRoute}, {"POST", rt.BeginRoute}, {"HEAD", rt.BlobRoute},
		{"PUT", rt.ManifestRoute}} {
		for _, status := range []int{400, 403, 503} {
			p, c := rt.New(t), newClient(t)
			p.On(step.method, step.about, rt.RefuseWith(status, "TOOMANYREQUESTS")).Times(2)
			if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: 64 * kib}); err != nil {
				t.Errorf("%s %v, %d: %v", step.method, step.about, status, err)
				continue
			}
			p.Check("m", "latest", want)
			if can := repositoryAt(t, c, p.Host()+"/m", remote.Push).Abilities(); can.NoChunks {
				t.Errorf("%s %v, %d: chunks count as refused", step.method, step.about, status)
			}
		}
	}
}

// TestPushLostBlobs: a registry that has the manifest, but lost blobs, gets them again.
func TestPushLostBlobs(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), newClient(t)
	name, want := rt.PutModel(t, s, "m", 3000, 100)
	push := func(tag string) {
		t.Helper()
		if _, err := c.Push(t.Context(), s, name, p.Name("m:"+tag), PushOptions{}); err != nil {
			t.Fatal(err)
		}
		p.Check("m", tag, want)
	}
	push("v1")
	for _, tag := range []string{"v1", "v2"} {
		p.DropBlob("m", digest.FromBytes(rt.Noise(0, 3000)))
		push(tag)
	}
	// It cannot be asked: the manifest has to do.
	p.On("", rt.BlobRoute, rt.Respond(403))
	c = newClient(t)
	before, _ := p.Traffic()
	push("v1")
	if after, _ := p.Traffic(); after != before {
		t.Errorf("%d bytes were sent", after-before)
	}
}

// TestPushLackedBlob: a blob that a registry reports to have, and to lack when it gets the manifest, is sent.
func TestPushLackedBlob(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 3000, 100)
	other := p.PutBlob("elsewhere", rt.Noise(0, 3000))
	p.On("HEAD", rt.BlobRoute, rt.Respond(200)).Of(string(other))
	p.On("PUT", rt.ManifestRoute, func(x *rt.Exchange) {
		if x.Blob(x.Repo, other) != nil {
			x.Handle()
			return
		}
		x.W.WriteHeader(400)
		fmt.Fprintf(x.W, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","detail":{"digest":%q}}]}`, other)
	})
	if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
}

// TestPushRedirectedHead: a blob whose HEAD is redirected to an address for GET only is not sent again.
func TestPushRedirectedHead(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), newClient(t)
	name, _ := rt.PutModel(t, s, "m", 3000, 0, 100)
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" {
			w.WriteHeader(403)
			return
		}
		p.Reset()
		p.ServeHTTP(w, r)
	}))
	defer storage.Close()
	p.Serve(s, name, "m", "v1")
	p.On("", rt.BlobRoute, func(x *rt.Exchange) {
		http.Redirect(x.W, x.R, storage.URL+x.R.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := c.Push(t.Context(), s, name, p.Name("m:v2"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	if received, _ := p.Traffic(); received != 0 {
		t.Errorf("%d bytes were sent", received)
	}
}

// TestPushLocationMoves: the Location may change its host after each chunk.
func TestPushLocationMoves(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), newClient(t)
	name, want := rt.PutModel(t, s, "m", 5*64*kib)
	other := httptest.NewServer(p)
	defer other.Close()
	p.On("", rt.UploadRoute, func(x *rt.Exchange) {
		to := other.URL
		if "http://"+x.R.Host == to {
			to = p.Server.URL
		}
		locations(func(l string) string { return to + l })(x)
	})
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: 64 * kib}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if n := p.Count("PATCH", rt.UploadRoute); n != 5 {
		t.Errorf("%d chunks", n)
	}
}

// TestPushOpens: an upload may be opened with another status, as long as it has a Location.
func TestPushOpens(t *testing.T) {
	s := rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 1000)
	for _, f := range []struct {
		name string
		do   rt.Action
		text string // of the error; empty: none
	}{
		{"200", withStatus(200), ""},
		{"201", mounting(false, rt.Respond(405)), ""},
		{"200 without a Location", rt.Respond(200), "no usable Location"},
		{"202 without a Location", rt.Respond(202), "no usable Location"},
		{"202 with the Location of a blob", rt.Respond(202, "Location", "/v2/m/blobs/"+string(want)), "no usable Location"},
	} {
		p := rt.New(t)
		p.On("POST", rt.BeginRoute, f.do)
		_, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{})
		if f.text == "" {
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
			} else {
				p.Check("m", "latest", want)
			}
		} else if err == nil || !strings.Contains(err.Error(), f.text) || len(p.Log()) > 20 {
			t.Errorf("%s: %v after %d requests", f.name, err, len(p.Log()))
		}
	}
}

// TestPushCancels: what a failed push leaves at the registry is only what a later one resumes. It fails when both
// uploads have begun: one whose response is still under way is unknown to the push.
func TestPushCancels(t *testing.T) {
	for name, end := range map[string]func(x *rt.Exchange, cancel func()){
		"refused":     func(x *rt.Exchange, _ func()) { rt.Respond(403)(x) },
		"interrupted": func(x *rt.Exchange, cancel func()) { cancel(); rt.Hang(x) },
	} {
		var begun sync.WaitGroup
		begun.Add(2)
		p, s := rt.New(t), rt.NewStore(t)
		model, _ := rt.PutModel(t, s, "m", 1000)
		ctx, cancel := context.WithCancel(t.Context())
		p.On("PUT", rt.UploadRoute, func(x *rt.Exchange) {
			begun.Done()
			begun.Wait()
			end(x, cancel)
		})
		if _, err := newClient(t).Push(ctx, s, model, p.Name("m"), PushOptions{}); err == nil {
			t.Errorf("%s: pushed", name)
		}
		if left := p.OpenSessions(); len(left) > 0 {
			t.Errorf("%s: left at the registry: %v", name, left)
		}
		cancel()
	}
}

// TestPushUnreadableSession: an interrupted upload whose offset a later push cannot read begins again, and leaves no
// record.
func TestPushUnreadableSession(t *testing.T) {
	for name, do := range map[string]rt.Action{
		"no Range": func(x *rt.Exchange) {
			rec := x.Record()
			rec.Header().Del("Range")
			x.Replay(rec, nil)
		},
		"500": rt.Respond(500), "404": rt.Respond(404), "405": rt.Respond(405),
	} {
		t.Run(name, func(t *testing.T) {
			p, s := rt.New(t), rt.NewStore(t)
			model, want := rt.PutModel(t, s, "m", 20*mib)
			opts := PushOptions{ChunkSize: 4 * mib}
			interrupt(t, s, model, p.Name("m"), opts, 9*mib)
			p.On("GET", rt.UploadRoute, do)
			p.On("POST", rt.BeginRoute, rt.Respond(403))
			if _, err := newClient(t).Push(t.Context(), s, model, p.Name("m"), opts); err == nil {
				t.Fatal("pushed without an upload")
			}
			if left := leftovers(t, s); len(left) > 0 && name != "500" { // the registry may only be down
				t.Errorf("left behind: %v", left)
			}
			p.Reset()
			p.On("GET", rt.UploadRoute, do)
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

// TestPushNotes: what a registry refuses is one note, and an error if the user wants it so.
func TestPushNotes(t *testing.T) {
	s := rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 1000, 100, 10, 1)
	for _, f := range []struct {
		name string
		set  func(p *rt.Peer)
		note string
	}{
		{"HEAD of blobs", refuse("", rt.BlobRoute, 403), "it does not say which blobs it has, so all are sent"},
		{"HEAD of manifests", reading(403), "it does not say which manifest is latest, so it is sent"},
		{"mounts", mounts(false, 500)["500"], "blobs are sent, since they cannot be mounted"},
		{"mounts without a source", mounts(false, 405)["405"], ""},
	} {
		for _, strict := range []bool{false, true} {
			p := rt.New(t)
			f.set(p)
			var notes []string
			c := newClient(t, func(o *Options) {
				o.Connection.Strict = strict
				o.Events = func(e Event) {
					if e.Kind == Warned {
						notes = append(notes, e.Err.Error())
					}
				}
			})
			_, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{})
			switch text := fmt.Sprint(err); {
			case strict && f.note != "":
				if !errors.Is(err, remote.ErrSkipped) || !strings.Contains(text, f.note) || strings.Contains(text, "\n") {
					t.Errorf("%s, strict: %v", f.name, err)
				}
			case err != nil:
				t.Errorf("%s: %v", f.name, err)
			case f.note == "" && len(notes) > 0, f.note != "" && (len(notes) != 1 || !strings.HasPrefix(notes[0], f.note)):
				t.Errorf("%s: %q, want one note: %q", f.name, notes, f.note)
			default:
				p.Check("m", "latest", want)
			}
		}
	}
}
