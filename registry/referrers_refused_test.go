package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pushes refuses some pushes of manifests.
func pushes(p *rt.Peer, refused func(x *rt.Exchange, doc ocispec.Manifest) bool, do rt.Action) {
	p.On(http.MethodPut, rt.ManifestRoute, func(x *rt.Exchange) {
		body := new(bytes.Buffer)
		_, _ = body.ReadFrom(x.R.Body)
		x.R.Body = http.NoBody
		var doc ocispec.Manifest
		_ = json.Unmarshal(body.Bytes(), &doc)
		if refused(x, doc) {
			do(x)
			return
		}
		r := *x
		r.R = x.R.Clone(x.R.Context())
		r.R.Body = &readCloser{*bytes.NewReader(body.Bytes())}
		r.Handle()
	})
}

type readCloser struct{ bytes.Reader }

func (*readCloser) Close() error { return nil }

func isArtifact(_ *rt.Exchange, doc ocispec.Manifest) bool { return doc.Subject != nil }
func isByDigest(x *rt.Exchange, _ ocispec.Manifest) bool   { return strings.Contains(x.Ref, ":") }
func isIndexTag(x *rt.Exchange, _ ocispec.Manifest) bool   { return strings.HasPrefix(x.Ref, "sha256-") }

// An artifact that is attached to a model and that a registry refuses does not end the push: there is one note that
// names the flag. With Strict it is an error.
func TestArtifactsRefused(t *testing.T) {
	refuse := func(status int, code string, which func(*rt.Exchange, ocispec.Manifest) bool) func(*rt.Peer) {
		return func(p *rt.Peer) { pushes(p, which, rt.RefuseWith(status, code)) }
	}
	for _, c := range []struct {
		name string
		set  func(*rt.Peer)
		note string // "" for none
	}{
		{"accepted", func(*rt.Peer) {}, ""},
		{"400", refuse(400, "MANIFEST_INVALID", isArtifact), "400 Bad Request: MANIFEST_INVALID"},
		{"403", refuse(403, "DENIED", isArtifact), "403 Forbidden: DENIED"},
		{"404", refuse(404, "MANIFEST_UNKNOWN", isArtifact), "404 Not Found"},
		{"405", refuse(405, "UNSUPPORTED", isArtifact), "405 Method"},
		{"413", refuse(413, "TOO_LARGE", isArtifact), "413 "},
		{"415", refuse(415, "UNSUPPORTED", isArtifact), "415 "},
		{"500", refuse(500, "UNKNOWN", isArtifact), "500 Internal"},
		{"401", refuse(401, "UNAUTHORIZED", isArtifact), "requires credentials"},
		{"a lost connection", func(p *rt.Peer) { pushes(p, isArtifact, rt.CutRequest(0, false)) }, "EOF"},
		{"no blob for ever", refuse(404, "MANIFEST_BLOB_UNKNOWN", isArtifact), "MANIFEST_BLOB_UNKNOWN"},
		{"no manifest by digest", refuse(405, "UNSUPPORTED", isByDigest), "405 Method"},
		{"no manifest by digest, denied", refuse(403, "DENIED", isByDigest), "403 Forbidden"},
		{"only tagged images by digest", refuse(400, "MANIFEST_INVALID", func(x *rt.Exchange, doc ocispec.Manifest) bool {
			return isByDigest(x, doc) && doc.Subject == nil
		}), ""},
		{"no artifact before its subject", refuse(400, "MANIFEST_INVALID", func(x *rt.Exchange, doc ocispec.Manifest) bool {
			return isByDigest(x, doc) && (doc.Subject == nil || x.Manifest(x.Repo, string(doc.Subject.Digest)) == nil)
		}), ""},
		{"no index", func(p *rt.Peer) {
			p.NoReferrers = true
			refuse(400, "MANIFEST_INVALID", isIndexTag)(p)
		}, "the registry has it, but cannot list it: PUT"},
		{"immutable index", func(p *rt.Peer) {
			p.NoReferrers = true
			refuse(409, "TAG_INVALID", isIndexTag)(p)
		}, "409 Conflict"},
		{"an API that a push does not mention", func(p *rt.Peer) {
			p.NoReferrers = true
			refuse(400, "MANIFEST_INVALID", isIndexTag)(p)
			p.On(http.MethodGet, rt.ReferrersRoute, func(x *rt.Exchange) {
				x.Mu.Lock()
				x.NoReferrers = false
				x.Mu.Unlock()
				x.Handle()
			})
		}, ""},
		{"an API that lists nothing", func(p *rt.Peer) {
			p.NoReferrers = true
			p.On(http.MethodGet, rt.ReferrersRoute, index(""))
		}, ""},
		{"no blob of an artifact", func(p *rt.Peer) {
			p.On(http.MethodPut, rt.UploadRoute, func(x *rt.Exchange) {
				if x.R.URL.Query().Get("digest") == string(digest.FromString("report")) {
					rt.RefuseWith(403, "DENIED")(x)
					return
				}
				x.Handle()
			})
		}, "403 Forbidden: DENIED"},
	} {
		for _, strict := range []bool{false, true} {
			name := c.name
			if strict {
				name += ", strict"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, s := rt.New(t), rt.NewStore(t)
				model, want := rt.PutModel(t, s, "m", 3000, 70)
				report := rt.Attach(t, s, want, reportType, "report")
				below := rt.Attach(t, s, report.Digest, reportType, "below")
				c.set(p)
				var notes []string
				client := newClient(t, func(o *Options) {
					o.Connection.Strict = strict
					o.Events = func(e Event) {
						if e.Kind == Warned {
							notes = append(notes, e.Name+": "+e.Err.Error())
						}
					}
				})
				got, err := client.Push(t.Context(), s, model, p.Name("team/m:v1"), PushOptions{})
				if strict && c.note != "" {
					if !errors.Is(err, remote.ErrSkipped) || !strings.Contains(err.Error(), c.note) || len(notes) > 0 {
						t.Errorf("%v, notes %q, want an error with %q", err, notes, c.note)
					}
					return
				}
				if err != nil || got != want {
					t.Fatalf("%s, %v, want %s\n%s", got, err, want, strings.Join(p.Log(), "\n"))
				}
				p.Check("team/m", "v1", want)
				switch {
				case c.note == "" && len(notes) == 0:
					wantReferrers(t, client, p.Name("team/m"), want, "", report)
					wantReferrers(t, client, p.Name("team/m"), report.Digest, "", below)
				case c.note == "" || len(notes) != 1 || !strings.Contains(notes[0], c.note) ||
					!strings.Contains(notes[0], "--no-referrers") || !strings.HasPrefix(notes[0], p.Host()+": "):
					t.Errorf("notes %q, want one with %q", notes, c.note)
				}
			})
		}
	}
}

// An artifact that cannot be added to an immutable index is noted, and those that it lists are not.
func TestImmutableIndex(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	p.NoReferrers = true
	model, d := rt.PutModel(t, s, "m", 3000)
	first := rt.Attach(t, s, d, reportType, "first")
	var notes []string
	client := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Warned {
				notes = append(notes, e.Err.Error())
			}
		}
	})
	if _, err := client.Push(t.Context(), s, model, p.Name("m:v1"), PushOptions{}); err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	second := rt.Attach(t, s, d, "text/plain", "second")
	pushes(p, isIndexTag, rt.RefuseWith(400, "TAG_INVALID"))
	if _, err := client.Push(t.Context(), s, model, p.Name("m:v2"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "v2", d)
	want := "artifact " + second.Digest.Encoded()[:12] + " (text/plain) is not attached"
	if len(notes) != 1 || !strings.Contains(notes[0], want) {
		t.Errorf("notes %q, want one with %q", notes, want)
	}
	wantReferrers(t, client, p.Name("m"), d, "", first)
}

// A registry that takes nothing under a tag ends the push, whatever it says to artifacts.
func TestTagRefused(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), newClient(t)
	model, d := rt.PutModel(t, s, "m", 3000)
	rt.Attach(t, s, d, reportType, "report")
	p.On(http.MethodPut, rt.ManifestRoute, rt.RefuseWith(400, "MANIFEST_INVALID"))
	_, err := c.Push(t.Context(), s, model, p.Name("m:v1"), PushOptions{})
	if err == nil || !strings.Contains(err.Error(), "/manifests/v1: 400 Bad Request") {
		t.Errorf("%v, want the refusal of the tag", err)
	}
}

// A registry that refuses to replace an immutable tag or manifest by the same is not at fault.
func TestImmutableTag(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		same   bool
	}{
		{400, "TAG_INVALID", true}, {403, "DENIED", true}, {409, "CONFLICT", true}, {412, "PRECONDITION", true},
		{409, "CONFLICT", false}, {412, "PRECONDITION", false},
	} {
		p, s, client := rt.New(t), rt.NewStore(t), newClient(t)
		model, d := rt.PutModel(t, s, "m", 3000)
		report := rt.Attach(t, s, d, reportType, "report")
		if c.same {
			p.Serve(s, model, "m", "v1")
		} else {
			other, _ := rt.PutModel(t, s, "other", 30)
			p.Serve(s, other, "m", "v1")
		}
		// The role may not ask before the push, so that it is tried.
		p.On(http.MethodHead, rt.ManifestRoute, rt.Respond(404)).Times(2)
		pushes(p, func(x *rt.Exchange, _ ocispec.Manifest) bool { return x.Manifest("m", x.Ref) != nil },
			rt.RefuseWith(c.status, c.code))
		_, err := client.Push(t.Context(), s, model, p.Name("m:v1"), PushOptions{})
		switch {
		case c.same && err != nil:
			t.Errorf("%d: %v", c.status, err)
		case c.same:
			wantReferrers(t, client, p.Name("m"), d, "", report)
		case err == nil || !strings.Contains(err.Error(), "push under another tag"):
			t.Errorf("%d, another model: %v", c.status, err)
		}
	}
}

// A source that does not list or send what is attached does not end a copy.
func TestCopyWithoutArtifacts(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(p *rt.Peer, report ocispec.Descriptor)
		left int // artifacts that are copied all the same
	}{
		{"no list", func(p *rt.Peer, _ ocispec.Descriptor) { p.On("", rt.ReferrersRoute, rt.Respond(500)) }, 0},
		{"denied", func(p *rt.Peer, _ ocispec.Descriptor) { p.On("", rt.ReferrersRoute, rt.RefuseWith(403, "DENIED")) }, 0},
		{"one is gone", func(p *rt.Peer, report ocispec.Descriptor) {
			p.On("", rt.ManifestRoute, rt.RefuseWith(404, "MANIFEST_UNKNOWN")).Of(string(report.Digest))
		}, 1},
		{"one has other bytes", func(p *rt.Peer, report ocispec.Descriptor) {
			p.On("", rt.ManifestRoute, rt.Flip(5)).Of(string(report.Digest))
		}, 1},
		{"a blob is gone", func(p *rt.Peer, _ ocispec.Descriptor) { p.DropBlob("m", digest.FromString("report")) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to, s := rt.New(t), rt.New(t), rt.NewStore(t)
			model, want := rt.PutModel(t, s, "m", 3000)
			report, other := rt.Attach(t, s, want, reportType, "report"), rt.Attach(t, s, want, reportType, "other")
			client := newClient(t)
			if _, err := client.Push(t.Context(), s, model, from.Name("m:v1"), PushOptions{}); err != nil {
				t.Fatal(err)
			}
			c.set(from, report)
			for _, strict := range []bool{false, true} {
				var notes []string
				client := newClient(t, func(o *Options) {
					o.Connection.Strict = strict
					o.Events = func(e Event) {
						if e.Kind == Warned {
							notes = append(notes, e.Err.Error())
						}
					}
				})
				_, err := client.Copy(t.Context(), from.Name("m:v1"), to.Name("m:v1"), PushOptions{})
				if strict {
					if !errors.Is(err, remote.ErrSkipped) {
						t.Errorf("strict: %v", err)
					}
					continue
				}
				if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "--no-referrers") {
					t.Fatalf("%v, notes %q", err, notes)
				}
				to.Check("m", "v1", want)
				list := []ocispec.Descriptor{other}
				wantReferrers(t, client, to.Name("m"), want, "", list[:c.left]...)
			}
		})
	}
}

// An artifact that is pushed by itself is no optional step.
func TestPushReferrerRefused(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), newClient(t)
	model, d := rt.PutModel(t, s, "m", 3000)
	p.Serve(s, model, "m", "v1")
	report := rt.Attach(t, s, d, reportType, "report")
	doc, err := s.ReadBlob(report.Digest, report.Size)
	if err != nil {
		t.Fatal(err)
	}
	pushes(p, isArtifact, rt.RefuseWith(400, "MANIFEST_INVALID"))
	_, err = c.PushReferrer(t.Context(), p.Name("m:v1"), report.MediaType, doc, []byte("report"), []byte("{}"))
	if err == nil || !strings.Contains(err.Error(), "MANIFEST_INVALID") || errors.Is(err, remote.ErrSkipped) {
		t.Error(err)
	}
}
