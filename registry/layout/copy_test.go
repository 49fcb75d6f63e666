package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/registry"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// An image goes through all kinds of places and is as before, with its referrers and theirs.
func TestCopyEverywhere(t *testing.T) {
	s, back, peer, dir := rt.NewStore(t), storetest.NewStore(t), rt.New(t), t.TempDir()
	name, want := rt.PutModel(t, s, "m", 3<<20, 70000, 0, 8)
	signature := rt.Attach(t, s, want, "text/plain", "signed").Digest
	below := rt.Attach(t, s, signature, "text/plain", "about it").Digest
	places := []Place{
		{Name: name, Store: s},
		at(t, "oci:%s/a", dir),
		at(t, "oci-archive:%s/a.tar", dir),
		at(t, "oci:%s/b:v1", dir),
		named(t, nil, peer.Host()+"/team/m:v1"),
		at(t, "oci-archive:%s/b.tar:v2", dir),
		named(t, nil, peer.Host()+"/other/m:v2"),
		at(t, "oci:%s/c:registry.example.com/team/m:v3", dir),
		named(t, back, "back"),
	}
	for i, to := range places[1:] {
		mustCopy(t, places[i], to, want)
	}
	checkReferrers(t, registry.Stored{Store: back}, want, signature)
	checkReferrers(t, registry.Stored{Store: back}, signature, below)
	storetest.CheckTidy(t, back)
	peer.Check("team/m", "v1", want)
	peer.Check("other/m", "v2", want)
	checkLayout(t, filepath.Join(dir, "a"), "m:latest")
	checkLayout(t, filepath.Join(dir, "b"), "v1")
	checkLayout(t, filepath.Join(dir, "c"), "registry.example.com/team/m:v3")
	if open := peer.OpenSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("files are left: %v, %v", entries, err)
	}
	plain := at(t, "oci:%s/plain", dir)
	if _, err := Copy(t.Context(), newClient(t, nil), places[1], plain,
		Options{Push: registry.PushOptions{NoReferrers: true}}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "plain", "index.json"))
	if err != nil || bytes.Contains(b, []byte(signature)) {
		t.Errorf("without referrers: %s, %v", b, err)
	}
}

// Another copy of the same image changes nothing; it reads nothing from a registry.
func TestCopyAgain(t *testing.T) {
	s, peer, dir := rt.NewStore(t), rt.New(t), t.TempDir()
	name, want := rt.PutModel(t, s, "m", 70000, 8)
	peer.Serve(s, name, "team/m", "v1")
	from := named(t, nil, peer.Host()+"/team/m:v1")
	for _, to := range []Place{at(t, "oci:%s/a:v1", dir), at(t, "oci-archive:%s/a.tar:v1", dir)} {
		mustCopy(t, from, to, want)
		before := contents(t, dir)
		_, served := peer.Traffic()
		mustCopy(t, from, to, want)
		if _, again := peer.Traffic(); again != served {
			t.Errorf("%s: %d bytes of blobs were read again", to, again-served)
		}
		if after := contents(t, dir); !slices.Equal(before, after) {
			t.Errorf("%s: it changed: %v, %v", to, before, after)
		}
	}
}

// contents lists the files below a folder with their digests.
func contents(t *testing.T, dir string) (list []string) {
	for _, file := range files(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, file+" "+digest.FromBytes(b).String())
	}
	return list
}

// The images of a layout or archive that exists are kept. One that a name no longer stands for stays in a layout, and
// its blobs leave an archive.
func TestCopyAdds(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, one := rt.PutModel(t, s, "one", 70000)
	_, two := rt.PutModel(t, s, "two", 70000, 8)
	_, three := rt.PutModel(t, s, "three", 9, 10)
	signature := rt.Attach(t, s, one, "text/plain", "signed").Digest
	for _, place := range []string{"oci:" + dir + "/a", "oci-archive:" + dir + "/a.tar"} {
		mustCopy(t, named(t, s, "one"), at(t, "%s:v1", place), one)
		mustCopy(t, named(t, s, "two"), at(t, "%s:v2", place), two)
		checkNames(t, *at(t, "%s", place).Layout, "v1", "v2")
		mustCopy(t, named(t, s, "three"), at(t, "%s:v2", place), three)
		checkNames(t, *at(t, "%s", place).Layout, "v1", "v2")
		check := rt.NewStore(t)
		mustCopy(t, at(t, "%s:v1", place), named(t, check, "one"), one)
		mustCopy(t, at(t, "%s:v2", place), named(t, check, "three"), three)
		checkReferrers(t, registry.Stored{Store: check}, one, signature)
	}
	l, err := Open(t.Context(), Ref{Archive: true, Path: dir + "/a.tar"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.blob(two); err == nil {
		t.Error("the archive still has the image that was replaced")
	}
}

// The bytes of an archive depend on what is in it only.
func TestArchiveReproducible(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 70000, 8, 3)
	rt.Attach(t, s, want, "text/plain", "signed")
	mustCopy(t, named(t, s, "m"), at(t, "oci:%s/l:v1", dir), want)
	mustCopy(t, named(t, s, "m"), at(t, "oci-archive:%s/a:v1", dir), want)
	mustCopy(t, at(t, "oci:%s/l", dir), at(t, "oci-archive:%s/b", dir), want)
	a, err := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives of the same image differ: %v", err)
	}
}

// Blobs of a store are linked into a layout. Those of a layout are linked only if nothing may write to them.
func TestLinks(t *testing.T) {
	s, back, dir := rt.NewStore(t), rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 70000)
	blob := digest.FromBytes(rt.Noise(0, 70000))
	if r := mustCopy(t, named(t, s, "m"), at(t, "oci:%s/a", dir), want); r.Linked < 70000 {
		t.Errorf("from the store: %+v", r)
	}
	path := filepath.Join(dir, "a", blobPath(blob))
	r := mustCopy(t, at(t, "oci:%s/a", dir), named(t, back, "m"), want)
	if r.Linked < 70000 || !same(t, path, back.BlobPath(blob)) {
		t.Errorf("read-only: %+v", r)
	}
	writable := filepath.Join(dir, "w")
	for _, file := range files(t, filepath.Join(dir, "a")) {
		b, err := os.ReadFile(filepath.Join(dir, "a", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(writable, file), b)
	}
	other := rt.NewStore(t)
	if r := mustCopy(t, at(t, "oci:%s", writable), named(t, other, "m"), want); r.Linked != 0 ||
		same(t, filepath.Join(writable, blobPath(blob)), other.BlobPath(blob)) {
		t.Errorf("writable: %+v", r)
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// A blob that is damaged, cut or missing keeps the image from being shown anywhere, and damages nothing that is there.
func TestDamaged(t *testing.T) {
	for _, damage := range []struct {
		name string
		do   func(path string) error
	}{
		{"other bytes", func(path string) error { return os.WriteFile(path, make([]byte, 70000), 0o644) }},
		{"cut", func(path string) error { return os.Truncate(path, 100) }},
		{"longer", func(path string) error { return os.WriteFile(path, make([]byte, 70001), 0o644) }},
		{"missing", os.Remove},
		{"a folder", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }},
		{"another file", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			s, to, peer, dir := rt.NewStore(t), storetest.NewStore(t), rt.New(t), t.TempDir()
			_, want := rt.PutModel(t, s, "m", 70000, 8)
			from := at(t, "oci:%s/a", dir)
			mustCopy(t, named(t, s, "m"), from, want)
			path := filepath.Join(dir, "a", blobPath(digest.FromBytes(rt.Noise(0, 70000))))
			b, err := os.ReadFile(path)
			if err == nil {
				err = errors.Join(os.Remove(path), os.WriteFile(path, b, 0o644)) // no link to the store
			}
			if err = errors.Join(err, damage.do(path)); err != nil {
				t.Fatal(err)
			}
			for _, dst := range []Place{
				at(t, "oci:%s/b", dir), at(t, "oci-archive:%s/b.tar", dir), named(t, to, "m"),
				named(t, nil, peer.Host()+"/team/m:v1"),
			} {
				if r, err := Copy(t.Context(), newClient(t, nil), from, dst, Options{}); err == nil {
					t.Errorf("to %s: %+v", dst, r)
				}
			}
			if got := storetest.Names(t, to); len(got) > 0 {
				t.Errorf("the store has %v", got)
			}
			storetest.CheckTidy(t, to)
			if peer.Manifest("team/m", "v1") != nil {
				t.Error("the registry has the image")
			}
			_, err = Open(t.Context(), Ref{Path: dir + "/b"})
			if !errors.Is(err, ErrLayout) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the layout exists: %v", err)
			}
			if _, err := os.Stat(dir + "/b.tar"); err == nil {
				t.Error("the archive exists")
			}
			if damage.name != "a folder" { // a layout that gets the image from elsewhere is mended
				mustCopy(t, named(t, s, "m"), from, want)
				checkLayout(t, filepath.Join(dir, "a"), "m:latest")
			}
		})
	}
}

// A registry that fails while a blob is read is asked again; one that sends other bytes ends the copy.
func TestFromFaults(t *testing.T) {
	for _, f := range []struct {
		name string
		set  func(*rt.Peer)
		want error
	}{
		{"cut", func(p *rt.Peer) { p.Once("GET", rt.BlobRoute, rt.CutResponse(1000)) }, nil},
		{"busy", func(p *rt.Peer) { p.Once("GET", rt.BlobRoute, rt.Respond(503)) }, nil},
		{"one bit, once", func(p *rt.Peer) { p.Once("GET", rt.BlobRoute, rt.Flip(100)) }, nil},
		{"one bit", func(p *rt.Peer) { p.On("GET", rt.BlobRoute, rt.Flip(100)) }, remote.ErrDigest},
		{"gone", func(p *rt.Peer) { p.On("GET", rt.BlobRoute, rt.Respond(404)) }, remote.ErrNotFound},
		{"refused", func(p *rt.Peer) { p.On("GET", rt.BlobRoute, rt.Respond(403)) }, remote.ErrUnauthorized},
	} {
		for _, kind := range []string{"oci:%s/a:v1", "oci-archive:%s/a.tar:v1"} {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				s, peer, dir := rt.NewStore(t), rt.New(t), t.TempDir()
				name, want := rt.PutModel(t, s, "m", 70000)
				peer.Serve(s, name, "team/m", "v1")
				f.set(peer)
				from := named(t, nil, peer.Host()+"/team/m:v1")
				r, err := Copy(t.Context(), newClient(t, nil), from, at(t, kind, dir), Options{})
				if f.want == nil {
					if err != nil || r.Digest != want {
						t.Fatalf("%+v, %v", r, err)
					}
					mustCopy(t, at(t, kind, dir), named(t, rt.NewStore(t), "m"), want)
					return
				}
				if !errors.Is(err, f.want) {
					t.Errorf("%+v, %v", r, err)
				}
				if _, err := os.Stat(dir + "/a.tar"); err == nil {
					t.Error("the archive exists")
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && left[0].Name() != "a" {
					t.Errorf("%v is left, %v", left, err)
				}
				if _, err := os.Stat(dir + "/a/index.json"); err == nil {
					t.Error("the layout has an index")
				}
			})
		}
	}
}

// Blobs of an archive go in chunks from where they are in it, also after a failure.
func TestPushChunks(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 3<<20, 70000, 2<<20)
	for _, kind := range []string{"oci:%s/a:v1", "oci-archive:%s/a.tar:v1"} {
		peer := rt.New(t)
		mustCopy(t, named(t, s, "m"), at(t, kind, dir), want)
		peer.Once("PATCH", rt.UploadRoute, rt.CutRequest(100000, true)).After(2)
		peer.Once("PUT", rt.UploadRoute, rt.Respond(502))
		_, err := Copy(t.Context(), newClient(t, nil), at(t, kind, dir), named(t, nil, peer.Host()+"/team/m:v1"),
			Options{Push: registry.PushOptions{ChunkSize: 512 << 10}})
		if err != nil {
			t.Fatal(err)
		}
		peer.Check("team/m", "v1", want)
		if n := peer.Count("PATCH", rt.UploadRoute); n < 6 {
			t.Errorf("%d chunks", n)
		}
	}
}

// A signature that a registry has lost is named with the remedy; without it the copy succeeds.
func TestLostReferrer(t *testing.T) {
	s, peer, dir := rt.NewStore(t), rt.New(t), t.TempDir()
	name, want := rt.PutModel(t, s, "m", 70000)
	rt.Attach(t, s, want, "text/plain", "signed")
	c, from := newClient(t, nil), named(t, nil, peer.Host()+"/team/m:v1")
	if _, err := c.Push(t.Context(), s, name, from.Name, registry.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	peer.DropBlob("team/m", digest.FromString("signed"))
	for _, to := range []Place{at(t, "oci:%s/a", dir), at(t, "oci-archive:%s/a.tar", dir)} {
		_, err := Copy(t.Context(), c, from, to, Options{})
		if !errors.Is(err, remote.ErrNotFound) || !strings.Contains(err.Error(), "--no-referrers") {
			t.Error(err)
		}
		if _, err := Copy(t.Context(), c, from, to, Options{Push: registry.PushOptions{NoReferrers: true}}); err != nil {
			t.Error(err)
		}
	}
}

// A copy that is interrupted leaves no file that is not whole, and shows nothing.
func TestInterrupted(t *testing.T) {
	for _, kind := range []string{"oci:%s/a:v1", "oci-archive:%s/a.tar:v1"} {
		s, peer, dir := rt.NewStore(t), rt.New(t), t.TempDir()
		name, want := rt.PutModel(t, s, "m", 70000, 8)
		peer.Serve(s, name, "team/m", "v1")
		ctx, cancel := context.WithCancel(t.Context())
		peer.On("GET", rt.BlobRoute, func(x *rt.Exchange) { cancel(); x.Handle() })
		from := named(t, nil, peer.Host()+"/team/m:v1")
		if r, err := Copy(ctx, newClient(t, nil), from, at(t, kind, dir), Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		for _, file := range files(t, dir) {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || filepath.Base(file) != digest.FromBytes(b).Encoded() {
				t.Errorf("%s is left: %v", file, err)
			}
		}
		peer.Reset()
		mustCopy(t, from, at(t, kind, dir), want)
	}
}

// Copies to the same place at the same time all arrive.
func TestConcurrentCopies(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	for _, place := range []string{"oci:" + dir + "/a", "oci-archive:" + dir + "/a.tar"} {
		var names []string
		var wait sync.WaitGroup
		for i := range 6 {
			name := fmt.Sprint("m", i)
			_, want := rt.PutModel(t, s, name, 3000, 10+i)
			names = append(names, name+":latest")
			wait.Go(func() {
				r, err := Copy(t.Context(), newClient(t, nil), named(t, s, name), at(t, "%s", place), Options{})
				if err != nil || r.Digest != want {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		wait.Wait()
		l, err := Open(t.Context(), *at(t, "%s", place).Layout)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range l.Images() {
			got = append(got, nameOf(d))
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("%s has %q, want %q", place, got, names)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
