package unpack_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/ingotml/ingot/manifest/unpack"
	"github.com/opencontainers/go-digest"
)

// parsed is an image with its blobs in a folder.
func parsed(t *testing.T, i ft.Image) (*foreign.Image, unpack.Blobs) {
	t.Helper()
	img, err := foreign.Parse(i.Manifest, i.Config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, b := range i.Blobs {
		if err := os.WriteFile(filepath.Join(dir, digest.FromBytes(b).Encoded()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return img, func(d digest.Digest) (*os.File, error) { return os.Open(filepath.Join(dir, d.Encoded())) }
}

// read returns the files of a folder, and fails for anything else in it.
func read(t *testing.T, dir string) ft.Files {
	t.Helper()
	files := ft.Files{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is %v", path, d.Type())
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

var files = ft.Files{"config.json": "{}", "model.safetensors": "weights", "sub/deep/vocab.json": "[]", "README.md": ""}

// The files of every format are written, all or those of a pattern.
func TestWrite(t *testing.T) {
	kit := []ft.KitPart{
		{Type: "model", Path: ".", Files: ft.Files{"config.json": "{}", "model.safetensors": "weights"}},
		{Type: "docs", Path: "README.md", Files: ft.Files{"README.md": ""}},
		{Type: "code", Path: "sub", Files: ft.Files{"sub/deep/vocab.json": "[]"}},
	}
	var members []ft.Member
	for _, name := range slices.Sorted(maps.Keys(files)) {
		members = append(members, ft.Member{Name: "./" + name, Content: files[name]})
	}
	for name, image := range map[string]ft.Image{
		"modctl raw": ft.ModelPack(t, files, ft.Raw), "modctl tar": ft.ModelPack(t, files, ft.Tar),
		"modctl gzip": ft.ModelPack(t, files, ft.Gzip), "modctl zstd": ft.ModelPack(t, files, ft.Zstd),
		"kit": ft.ModelKit(t, "", kit...), "kit gzip": ft.ModelKit(t, "+gzip", kit...),
		"docker": ft.ModelRunner(t, files, true, nil), "oras": ft.Oras(t, files),
		"container": ft.Container(t, []string{"sh"}, members),
	} {
		img, blobs := parsed(t, image)
		dir := filepath.Join(t.TempDir(), "new", "dir")
		list, err := unpack.Write(t.Context(), img, blobs, dir, unpack.Options{})
		if got := read(t, dir); err != nil || !maps.Equal(got, files) || len(list) != len(files) {
			t.Errorf("%s: %v, %v, %v", name, got, list, err)
		}
		for pattern, want := range map[string][]string{
			"*.json": {"config.json", "sub/deep/vocab.json"}, "sub": {"sub/deep/vocab.json"}, "sub/*": {"sub/deep/vocab.json"},
			"config.json": {"config.json"}, "*.gguf": nil,
		} {
			dir := filepath.Join(t.TempDir(), "new")
			_, err := unpack.Write(t.Context(), img, blobs, dir, unpack.Options{Patterns: []string{pattern}})
			if got := slices.Sorted(maps.Keys(read(t, dir))); !slices.Equal(got, want) || (err == nil) == (want == nil) {
				t.Errorf("%s: %s: %v, %v", name, pattern, got, err)
			}
			if _, err := os.Stat(dir); want == nil && err == nil {
				t.Errorf("%s: %s: the folder is there", name, pattern)
			}
		}
	}
}

// What no folder can hold, or what is no archive, is refused, and nothing is written.
func TestHostile(t *testing.T) {
	one := func(m ft.Member) []ft.Member { return []ft.Member{{Name: "good", Content: "x"}, m} }
	for name, members := range map[string][]ft.Member{
		"up":           one(ft.Member{Name: "../x"}),
		"inside up":    one(ft.Member{Name: "a/../../x"}),
		"up and down":  one(ft.Member{Name: "a/../x"}),
		"absolute":     one(ft.Member{Name: "/x"}),
		"backslash":    one(ft.Member{Name: `..\x`}),
		"drive":        one(ft.Member{Name: "C:x"}),
		"control":      one(ft.Member{Name: "a\x1b[2J"}),
		"long":         one(ft.Member{Name: strings.Repeat("a", 256)}),
		"deep":         one(ft.Member{Name: strings.Repeat("a/", limits.ArchiveDepth) + "a"}),
		"long path":    one(ft.Member{Name: strings.Repeat(strings.Repeat("a", 200)+"/", 21) + "a"}),
		"twice":        one(ft.Member{Name: "good"}),
		"twice, dot":   one(ft.Member{Name: "./good"}),
		"case":         one(ft.Member{Name: "GOOD"}),
		"folder case":  {{Name: "a/x"}, {Name: "A/y"}},
		"form":         {{Name: "e\u0301"}, {Name: "\u00e9"}},
		"file, folder": one(ft.Member{Name: "good/x"}),
		"folder, file": {{Name: "a/x"}, {Name: "a"}},
		"link":         one(ft.Member{Name: "x", Type: tar.TypeSymlink, Link: "/etc/passwd"}),
		"hard link":    one(ft.Member{Name: "x", Type: tar.TypeLink, Link: "good"}),
		"device":       one(ft.Member{Name: "x", Type: tar.TypeChar}),
		"pipe":         one(ft.Member{Name: "x", Type: tar.TypeFifo}),
		"unknown type": one(ft.Member{Name: "x", Type: 'V'}),
	} {
		for _, wrapping := range []string{ft.Tar, ft.Zstd} {
			refused(t, name, archive(t, ft.Wrap(t, wrapping, members...)))
		}
	}
	whole := ft.Wrap(t, ft.Tar, ft.Member{Name: "good", Content: strings.Repeat("x", 5000)})
	packed := ft.Compress(t, ft.Gzip, whole)
	for name, content := range map[string]string{
		"cut off": whole[:3000], "gzip cut off": packed[:len(packed)-12], "not an archive": strings.Repeat("text ", 500),
		"sparse": sparse(whole), "short": "x", "zstd garbage": "\x28\xb5\x2f\xfd" + strings.Repeat("\xff", 600),
		"gzip garbage": "\x1f\x8b" + strings.Repeat("\xff", 600), "a bad checksum": whole[:100] + "9" + whole[101:],
		"gzip of a text": ft.Compress(t, ft.Gzip, strings.Repeat("text ", 500)),
	} {
		refused(t, name, archive(t, content))
	}
}

// sparse makes the first member of an archive a sparse file of GNU tar, whose size may be anything.
func sparse(archive string) string {
	b := []byte(archive)
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	clear(b[345:512])
	copy(b[386:], "00000000000\x0000000000000\x00")
	copy(b[483:], "77777777777\x00")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(b)
}

// archive is a ModelKit of one archive.
func archive(t *testing.T, content string) ft.Image {
	t.Helper()
	return ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", "{}",
		ft.Layer{MediaType: "application/vnd.kitops.modelkit.model.v1.tar", Content: content})
}

func refused(t *testing.T, name string, image ft.Image) {
	t.Helper()
	img, blobs := parsed(t, image)
	dir := filepath.Join(t.TempDir(), "new")
	_, err := unpack.Write(t.Context(), img, blobs, dir, unpack.Options{})
	if !errors.Is(err, unpack.ErrArchive) {
		t.Errorf("%s: %v", name, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s: the folder is there: %v", name, read(t, dir))
	}
}

// A folder's files, and those that a link leads to, are not overwritten.
func TestWriteExisting(t *testing.T) {
	img, blobs := parsed(t, ft.ModelPack(t, files, ft.Tar))
	write := func(dir string, force bool) error {
		_, err := unpack.Write(t.Context(), img, blobs, dir, unpack.Options{Force: force})
		return err
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, false); !errors.Is(err, unpack.ErrExists) {
		t.Error(err)
	}
	if got := read(t, dir); !maps.Equal(got, ft.Files{"config.json": "mine"}) {
		t.Errorf("%v", got)
	}
	if err := write(dir, true); err != nil || !maps.Equal(read(t, dir), files) {
		t.Errorf("%v, %v", read(t, dir), err)
	}
	if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "README.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, true); !errors.Is(err, unpack.ErrExists) {
		t.Error(err)
	}
	linked := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(linked, "sub")); err != nil {
		t.Skip(err)
	}
	if err := write(linked, true); err == nil || len(read(t, outside)) > 0 {
		t.Errorf("%v, %v", read(t, outside), err)
	}
	if entries, _ := os.ReadDir(linked); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A blob that is not what its digest says is not written.
func TestWriteCorrupt(t *testing.T) {
	img, _ := parsed(t, ft.ModelPack(t, files, ft.Raw))
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("others"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(digest.Digest) (*os.File, error) { return os.Open(other) }
	_, err := unpack.Write(t.Context(), img, open, dir, unpack.Options{})
	if entries, _ := os.ReadDir(dir); !errors.Is(err, manifest.ErrCorrupt) || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Layers of a container image are one file system.
func TestContainer(t *testing.T) {
	link := ft.Member{Name: "bin/sh", Type: tar.TypeSymlink, Link: "/bin/busybox"}
	img, blobs := parsed(t, ft.Container(t, []string{"sh"},
		[]ft.Member{{Name: "models/a", Content: "1"}, {Name: "models/b", Content: "2"}, {Name: "old/x"},
			{Name: "old/y/z"}, link},
		[]ft.Member{{Name: "models/a", Content: "3"}, {Name: "models/.wh.b"}, {Name: "old/new"}, {Name: "old/.wh..wh..opq"}},
		[]ft.Member{{Name: "tmp"}, {Name: "was/file"}},
		[]ft.Member{{Name: ".wh.tmp"}, {Name: "was/file/now/a/folder"}}))
	for pattern, want := range map[string]ft.Files{
		"":       {"models/a": "3", "old/new": "", "was/file/now/a/folder": ""},
		"models": {"models/a": "3"},
	} {
		dir, patterns := t.TempDir(), []string(nil)
		if pattern != "" {
			patterns = []string{pattern}
		}
		if _, err := unpack.Write(t.Context(), img, blobs, dir, unpack.Options{Patterns: patterns}); err != nil {
			t.Error(err)
		}
		if got := read(t, dir); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
}

// What a small archive unpacks to is bounded.
func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<20)
	for _, wrapping := range []string{ft.Gzip, ft.Zstd} {
		// Both formats allow several frames one after the other.
		b := ft.Compress(t, wrapping, ft.Header(t, "zeros", 2*limits.ArchiveUnpacked)) +
			strings.Repeat(ft.Compress(t, wrapping, zeros), limits.ArchiveUnpacked/len(zeros)+1)
		err := unpack.Walk(t.Context(), strings.NewReader(b), int64(len(b)), func(m unpack.Member) error {
			_, err := io.Copy(io.Discard, m.Reader)
			return err
		})
		if !errors.Is(err, unpack.ErrArchive) || !strings.Contains(err.Error(), "32 times") {
			t.Errorf("%s: %v", wrapping, err)
		}
	}
	// A frame of zstd whose window has 256 MiB.
	window := "\x28\xb5\x2f\xfd" + "\x00" + "\x90" + strings.Repeat("\x00", 600)
	none := func(unpack.Member) error { return nil }
	err := unpack.Walk(t.Context(), strings.NewReader(window), int64(len(window)), none)
	if !errors.Is(err, unpack.ErrArchive) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("window: %v", err)
	}
}

// endless is an archive that repeats its first header.
type endless string

func (e endless) ReadAt(p []byte, offset int64) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], e[(offset+int64(n))%int64(len(e)):])
	}
	return len(p), nil
}

// The number of members is bounded, and so are the bytes of their paths.
func TestManyMembers(t *testing.T) {
	header := ft.Wrap(t, ft.Tar, ft.Member{Name: "d/", Type: tar.TypeDir})[:512]
	err := unpack.Walk(t.Context(), endless(header), 1<<40, func(unpack.Member) error { return nil })
	if !errors.Is(err, unpack.ErrArchive) || !strings.Contains(err.Error(), "250000 members") {
		t.Error(err)
	}
	var names unpack.Names
	mixed, gone := unpack.Names{Mixed: true}, unpack.Whiteouts{}
	for name, add := range map[string]func(string) error{
		"files": names.Add, "files of a container image": mixed.Add,
		"whiteouts": func(name string) error { _, err := gone.Add(".wh." + name); return err },
	} {
		err := error(nil)
		for i := 0; err == nil || !strings.Contains(err.Error(), "32 MiB"); i++ {
			if err = add(fmt.Sprintf("%0200d", i)); i > 200_000 {
				t.Fatal(name, err)
			}
		}
	}
}

// A file that an image has beside an archive with another one of the same path is an error, whichever comes first.
func TestFileAndArchive(t *testing.T) {
	inside := ft.Layer{MediaType: "application/vnd.kitops.modelkit.model.v1.tar",
		Content: ft.Wrap(t, ft.Tar, ft.Member{Name: "config.json", Content: "{}"})}
	beside := ft.Layer{MediaType: "application/vnd.cncf.model.weight.config.v1.raw", Content: "[]",
		Annotations: map[string]string{"org.cncf.model.filepath": "config.json"}}
	for _, layers := range [][]ft.Layer{{inside, beside}, {beside, inside}} {
		refused(t, "a file and an archive", ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", "{}", layers...))
	}
}

// A cancelled walk ends within a member that is skipped.
func TestWalkCancelled(t *testing.T) {
	packed := ft.Wrap(t, ft.Gzip, ft.Member{Name: "a", Content: strings.Repeat("x", 8<<20)})
	why := errors.New("interrupted")
	for _, reads := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := unpack.Walk(ctx, strings.NewReader(packed), int64(len(packed)), func(m unpack.Member) (err error) {
			cancel(why)
			if reads {
				_, err = io.Copy(io.Discard, m.Reader)
			}
			return err
		})
		if !errors.Is(err, why) || errors.Is(err, unpack.ErrArchive) {
			t.Error(err)
		}
	}
}

// A cancelled write leaves nothing.
func TestWriteCancelled(t *testing.T) {
	img, blobs := parsed(t, ft.ModelPack(t, files, ft.Raw))
	ctx, cancel := context.WithCancel(t.Context())
	dir := filepath.Join(t.TempDir(), "new")
	_, err := unpack.Write(ctx, img, blobs, dir, unpack.Options{Progress: func(int64, int64) { cancel() }})
	if _, gone := os.Stat(dir); !errors.Is(err, context.Canceled) || gone == nil {
		t.Errorf("%v, %v", err, gone)
	}
}
