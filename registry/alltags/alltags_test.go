package alltags

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/layout"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

func newClient(t testing.TB) *registry.Client {
	t.Helper()
	c, err := registry.New(registry.Options{Connection: remote.Options{
		Keychain: authn.NewMultiKeychain(), Attempts: 2, Mirrors: []remote.Mirror{}}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listTags makes a peer list tags, in pages.
func listTags(p *rt.Peer, pages ...[]string) {
	p.On("GET", rt.TagsRoute, func(x *rt.Exchange) {
		var at int
		fmt.Sscan(x.R.URL.Query().Get("page"), &at)
		if at+1 < len(pages) {
			x.W.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, x.R.URL.Path, at+1))
		}
		_ = json.NewEncoder(x.W).Encode(map[string]any{"tags": pages[at]})
	})
}

// copyTags copies all tags from one peer to another, and returns a line for each.
func copyTags(t *testing.T, from, to *rt.Peer, o registry.PushOptions) (lines []string, err error) {
	t.Helper()
	return copyPlaces(t, layout.Place{Name: from.Name("team/m")}, layout.Place{Name: to.Name("other/m")}, o)
}

func copyPlaces(t *testing.T, from, to layout.Place, o registry.PushOptions) (lines []string, err error) {
	t.Helper()
	err = Copy(t.Context(), newClient(t), from, to, layout.Options{Push: o}, func(tag Tag) {
		line := tag.Tag
		switch {
		case tag.Err != nil:
			line += " failed"
		case tag.Unchanged:
			line += " unchanged"
		}
		lines = append(lines, line)
	})
	return lines, err
}

// Every tag is copied, from all pages, with its referrers. A tag that fails does not stop the others. A tag that is the
// same is not copied again, but a new signature of it is.
func TestCopy(t *testing.T) {
	from, to, s := rt.New(t), rt.New(t), rt.NewStore(t)
	c := newClient(t)
	digests := map[string]digest.Digest{}
	for i, tag := range []string{"v1", "v2", "v3", "v4"} {
		name, d := rt.PutModel(t, s, tag, 70000, 10+i)
		digests[tag] = d
		if _, err := c.Push(t.Context(), s, name, from.Name("team/m:"+tag), registry.PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	tag := "sha256-" + digests["v1"].Encoded()
	listTags(from, []string{"v1", "v2", tag}, []string{}, []string{"v3", "v4", "lost"})
	fails := from.On("GET", rt.ManifestRoute, rt.Respond(403)).Of("v3")
	lines, err := copyTags(t, from, to, registry.PushOptions{})
	if want := []string{"v1", "v2", "v3 failed", "v4", "lost failed"}; err != nil || !slices.Equal(lines, want) {
		t.Fatalf("%q, %v, want %q", lines, err, want)
	}
	for _, tag := range []string{"v1", "v2", "v4"} {
		to.Check("other/m", tag, digests[tag])
	}
	fails.Times(0)
	received, _ := to.Traffic()
	rt.Attach(t, s, digests["v2"], "text/plain", "signed")
	if _, err := c.PushReferrers(t.Context(), s, from.Name("team/m"), digests["v2"]); err != nil {
		t.Fatal(err)
	}
	lines, err = copyTags(t, from, to, registry.PushOptions{})
	want := []string{"v1 unchanged", "v2", "v3", "v4 unchanged", "lost failed"}
	if err != nil || !slices.Equal(lines, want) {
		t.Errorf("%q, %v, want %q", lines, err, want)
	}
	if again, _ := to.Traffic(); again-received > 70000 {
		t.Errorf("%d bytes were sent again", again-received)
	}
	list, err := c.Referrers(t.Context(), to.Name("other/m"), digests["v2"], "")
	if err != nil || len(list) != 1 {
		t.Errorf("referrers: %v, %v", list, err)
	}
	lines, err = copyTags(t, from, to, registry.PushOptions{NoReferrers: true})
	if err != nil || strings.Count(strings.Join(lines, "\n"), "unchanged") != 4 {
		t.Errorf("%q, %v", lines, err)
	}
}

// A list that cannot be read to its end copies nothing.
func TestListFails(t *testing.T) {
	for name, set := range map[string]func(*rt.Peer){
		"refused": func(p *rt.Peer) { p.On("GET", rt.TagsRoute, rt.Respond(403)) },
		"no list": func(p *rt.Peer) { p.On("GET", rt.TagsRoute, rt.Respond(200)) },
		"another origin": func(p *rt.Peer) {
			p.On("GET", rt.TagsRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Link", `<https://elsewhere.example/v2/team/m/tags/list>; rel="next"`)
				fmt.Fprint(x.W, `{"tags":["v1"]}`)
			})
		},
		"no end": func(p *rt.Peer) {
			p.On("GET", rt.TagsRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Link", `</v2/team/m/tags/list?n=1>; rel="next"`)
				fmt.Fprint(x.W, `{"tags":["v1"]}`)
			})
		},
	} {
		from, to, s := rt.New(t), rt.New(t), rt.NewStore(t)
		model, _ := rt.PutModel(t, s, "m", 8)
		from.Serve(s, model, "team/m", "v1")
		set(from)
		if lines, err := copyTags(t, from, to, registry.PushOptions{}); err == nil || len(lines) > 0 {
			t.Errorf("%s: %q, %v", name, lines, err)
		}
		if to.Manifest("other/m", "v1") != nil {
			t.Errorf("%s: a tag was copied", name)
		}
	}
}

// A compressed archive is opened once, however many tags it has.
func TestCopyArchive(t *testing.T) {
	to, s, dir := rt.New(t), rt.NewStore(t), t.TempDir()
	plain := filepath.Join(dir, "plain.tar")
	want := map[string]digest.Digest{}
	for i, tag := range []string{"v1", "v2", "v3"} {
		name, d := rt.PutModel(t, s, tag, 70000, 10+i)
		rt.Attach(t, s, d, "text/plain", "signed "+tag)
		want[tag] = d
		if _, err := layout.Copy(t.Context(), newClient(t), layout.Place{Name: name, Store: s},
			layout.Place{Layout: &layout.Ref{Archive: true, Path: plain, Name: tag}}, layout.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "packed.tar.gz")
	if err := os.WriteFile(packed, z.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	err = Copy(t.Context(), newClient(t), layout.Place{Layout: &layout.Ref{Archive: true, Path: packed}},
		layout.Place{Name: to.Name("other/m")}, layout.Options{}, func(tag Tag) {
			_ = os.Remove(packed)
			if tag.Err != nil {
				t.Errorf("%s: %v", tag.Tag, tag.Err)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	for tag, d := range want {
		to.Check("other/m", tag, d)
		if list, err := newClient(t).Referrers(t.Context(), to.Name("other/m"), d, ""); err != nil || len(list) != 1 {
			t.Errorf("referrers of %s: %v, %v", tag, list, err)
		}
	}
}

// The end of the context ends a copy.
func TestInterrupted(t *testing.T) {
	from, to, s := rt.New(t), rt.New(t), rt.NewStore(t)
	model, _ := rt.PutModel(t, s, "m", 8)
	from.Serve(s, model, "team/m", "v1")
	listTags(from, []string{"v1", "v2", "v3"})
	ctx, cancel := context.WithCancel(t.Context())
	from.On("GET", rt.ManifestRoute, func(x *rt.Exchange) { cancel(); rt.Hang(x) })
	src, dst := layout.Place{Name: from.Name("team/m")}, layout.Place{Name: to.Name("other/m")}
	err := Copy(ctx, newClient(t), src, dst, layout.Options{}, func(tag Tag) { t.Errorf("%+v", tag) })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A layout holds a repository, and gives it back.
func TestCopyLayout(t *testing.T) {
	from, to, s, c := rt.New(t), rt.New(t), rt.NewStore(t), newClient(t)
	digests := map[string]digest.Digest{}
	for i, tag := range []string{"v1", "v2"} {
		name, d := rt.PutModel(t, s, tag, 70000, 10+i)
		digests[tag] = d
		rt.Attach(t, s, d, "text/plain", "signed "+tag)
		if _, err := c.Push(t.Context(), s, name, from.Name("team/m:"+tag), registry.PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dir := layout.Place{Layout: &layout.Ref{Path: filepath.Join(t.TempDir(), "l")}}
	src, dst := layout.Place{Name: from.Name("team/m")}, layout.Place{Name: to.Name("other/m")}
	for _, step := range []struct {
		from, to layout.Place
		want     []string
	}{
		{src, dir, []string{"v1", "v2"}},
		{src, dir, []string{"v1 unchanged", "v2 unchanged"}},
		{dir, dst, []string{"v1", "v2"}},
		{dir, dst, []string{"v1 unchanged", "v2 unchanged"}},
	} {
		lines, err := copyPlaces(t, step.from, step.to, registry.PushOptions{})
		if err != nil || !slices.Equal(lines, step.want) {
			t.Fatalf("%s to %s: %q, %v", step.from, step.to, lines, err)
		}
	}
	for tag, d := range digests {
		to.Check("other/m", tag, d)
		if list, err := c.Referrers(t.Context(), to.Name("other/m"), d, ""); err != nil || len(list) != 1 {
			t.Errorf("referrers of %s: %v, %v", tag, list, err)
		}
	}
	// Whole names become tags, unless two have the same one.
	whole := *dir.Layout
	whole.Name = "registry.example.com/team/m:v3"
	if _, err := layout.Copy(t.Context(), c, layout.Place{Name: from.Name("team/m:v1")}, layout.Place{Layout: &whole},
		layout.Options{}); err != nil {
		t.Fatal(err)
	}
	if lines, err := copyPlaces(t, dir, dst, registry.PushOptions{}); err != nil || lines[2] != "v3" {
		t.Errorf("%q, %v", lines, err)
	}
	whole.Name = "registry.example.com/team/m:v2"
	if _, err := layout.Copy(t.Context(), c, layout.Place{Name: from.Name("team/m:v1")}, layout.Place{Layout: &whole},
		layout.Options{}); err != nil {
		t.Fatal(err)
	}
	lines, err := copyPlaces(t, dir, dst, registry.PushOptions{})
	if err == nil || !strings.Contains(err.Error(), "the tag v2 twice") {
		t.Errorf("%q, %v", lines, err)
	}
}
