package layout

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/storetest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

// Archives that other programs write are read: with folders, with ./ before names, with pax headers, compressed, in any
// order, and with files that are no part of the layout.
func TestArchives(t *testing.T) {
	members, want := handLayout(t, "v1")
	folder := tar.Header{Name: "blobs/", Typeflag: tar.TypeDir}
	var dotted, pax []tar.Header
	for _, m := range members {
		d, p := m, m
		d.Name = "./" + m.Name
		p.PAXRecords, p.Format = map[string]string{"mtime": "1.5", "X.note": strings.Repeat("x", 600)}, tar.FormatPAX
		dotted, pax = append(dotted, d), append(pax, p)
	}
	reversed := slices.Clone(members)
	slices.Reverse(reversed)
	for name, b := range map[string][]byte{
		"plain":      tarOf(t, members...),
		"folders":    tarOf(t, append([]tar.Header{folder, folder}, members...)...),
		"dotted":     tarOf(t, append([]tar.Header{{Name: "./", Typeflag: tar.TypeDir}}, dotted...)...),
		"pax":        tarOf(t, pax...),
		"reversed":   tarOf(t, reversed...),
		"more":       tarOf(t, append(members, file("manifest.json", "[]"), file("repositories", "{}"))...),
		"compressed": compressed(t, tarOf(t, members...)),
		"no end":     tarOf(t, members...)[:len(tarOf(t, members...))-1024],
	} {
		s, path := storetest.NewStore(t), write(t, filepath.Join(t.TempDir(), "x.tar"), b)
		r, err := Copy(t.Context(), newClient(t, nil), at(t, "oci-archive:%s", path), named(t, s, "m"), Options{})
		if err != nil || r.Digest != want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "ingot-*.tar"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func compressed(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// What is no archive of a layout, or is made to do harm, is refused before anything is written.
func TestHostileArchives(t *testing.T) {
	members, d := handLayout(t, "v1")
	with := func(more ...tar.Header) []byte { return tarOf(t, append(slices.Clone(members), more...)...) }
	without := func(name string) []byte {
		return tarOf(t, slices.DeleteFunc(slices.Clone(members), func(h tar.Header) bool { return h.Name == name })...)
	}
	instead := func(name, content string) []byte {
		return tarOf(t, append(slices.DeleteFunc(slices.Clone(members), func(h tar.Header) bool { return h.Name == name }),
			file(name, content))...)
	}
	whole := with()
	blob := blobPath(d)
	for _, c := range []struct {
		name, want string
		archive    []byte
	}{
		{"path upwards", "leads out of it", with(file("../x", "x"))},
		{"path upwards within", "leads out of it", with(file("blobs/../../x", "x"))},
		{"absolute path", "leads out of it", with(file("/etc/x", "x"))},
		{"path of Windows", "leads out of it", with(file(`..\x`, "x"))},
		{"symbolic link", "is a link",
			with(tar.Header{Name: "blobs/sha256/x", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink})},
		{"hard link", "is a link", with(tar.Header{Name: "index2", Linkname: "index.json", Typeflag: tar.TypeLink})},
		{"pipe", "neither a file nor a folder", with(tar.Header{Name: "pipe", Typeflag: tar.TypeFifo})},
		{"blob twice", "twice", with(file(blob, "other"))},
		{"index twice", "index.json twice", with(file("./index.json", "{}"))},
		{"truncated header", "truncated", whole[:len(whole)-1024-512-300]},
		{"truncated content", "truncated", whole[:len(whole)-1024-512]},
		{"no tar", "no tar archive", bytes.Repeat([]byte("x"), 2000)},
		{"short", "no tar archive", []byte("x")},
		{"empty", "it is empty", nil},
		{"zstd", "zstd -d", []byte("\x28\xb5\x2f\xfd0000")},
		{"xz", "xz -d", []byte("\xfd7zXZ\x00000")},
		{"broken gzip", "compression is damaged", compressed(t, whole)[:200]},
		{"docker", "docker's own form", tarOf(t, file("manifest.json", "[]"), file("x/layer.tar", "x"))},
		{"docker with links", "docker's own form", tarOf(t, file("manifest.json", "[]"),
			tar.Header{Name: "x/layer.tar", Linkname: "../y", Typeflag: tar.TypeSymlink})},
		{"no version", "no oci-layout", without("oci-layout")},
		{"no index", "no index.json", without("index.json")},
		{"no manifest", "has no blob " + string(d), without(blob)},
		{"another version", `version is "2.0.0"`, instead("oci-layout", `{"imageLayoutVersion":"2.0.0"}`)},
		{"broken version", "oci-layout: ", instead("oci-layout", `{`)},
		{"broken index", "index.json: ", instead("index.json", `[`)},
		{"index of version 1", "schema version 1", instead("index.json", `{"schemaVersion":1,"manifests":[]}`)},
		{"entry of a wrong kind", "index.json: ", instead("index.json", `{"schemaVersion":2,"manifests":[3]}`)},
		{"other manifest", "is damaged", instead(blob, strings.Replace(rt.SmallManifest("12345678"), "1", "2", 1))},
		{"path as digest", "digest",
			instead("index.json", `{"schemaVersion":2,"manifests":[{"digest":"sha256:../../index.json"}]}`)},
		{"no image", "has no image", instead("index.json", `{"schemaVersion":2,"manifests":[]}`)},
		{"wrong size", "not 9", instead("index.json", fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":`+
			`"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":9}]}`, d))},
		{"sparse", "sparse", append(sparse(), whole...)},
		{"GNU sparse", "sparse", append(retyped(tarHeader("x", tar.TypeReg, 0o644, 0), tar.TypeGNUSparse), whole...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := storetest.NewStore(t), t.TempDir()
			path := write(t, filepath.Join(dir, "in", "x.tar"), c.archive)
			from := at(t, "oci-archive:%s", path)
			for _, to := range []Place{named(t, s, "m"), at(t, "oci:%s/l", dir), at(t, "oci-archive:%s/y", dir)} {
				r, err := Copy(t.Context(), newClient(t, nil), from, to, Options{})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("to %s: %+v, %v, want %s", to, r, err, c.want)
				}
			}
			if got := files(t, dir); len(got) != 1 || len(storetest.Names(t, s)) > 0 {
				t.Errorf("there are %v and %v", got, storetest.Names(t, s))
			}
		})
	}
}

// retyped returns a header of another type, with its checksum.
func retyped(h []byte, kind byte) []byte {
	const at, length = 148, 8
	h[156] = kind
	copy(h[at:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[at:at+length], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// sparse returns a sparse file in the form of pax, as `tar --sparse` writes it.
func sparse() []byte {
	var records string
	for _, r := range []string{"GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=blobs/sha256/x",
		"GNU.sparse.size=1000000000000", "GNU.sparse.numblocks=1", "GNU.sparse.map=0,0"} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // all have two digits
	}
	content := append([]byte(records), make([]byte, block-len(records)%block)...)
	b := append(retyped(tarHeader("x", tar.TypeReg, 0o644, int64(len(records))), tar.TypeXHeader), content...)
	return append(b, tarHeader("x", tar.TypeReg, 0o644, 0)...)
}

// What is no layout or archive, and a store, is not written to.
func TestRefusedDestinations(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 8)
	write(t, filepath.Join(dir, "notes", "a.txt"), []byte("x"))
	members, _ := handLayout(t, "v1")
	unpack(t, filepath.Join(dir, "newer"), members)
	write(t, filepath.Join(dir, "newer", "oci-layout"), []byte(`{"imageLayoutVersion":"2.0.0"}`))
	before := contents(t, dir)
	for to, text := range map[string]string{
		"oci:" + dir + "/notes":                   "it contains a.txt but no oci-layout",
		"oci:" + dir + "/notes/a.txt":             "it is a file",
		"oci:" + dir + "/newer":                   `version is "2.0.0"`,
		"oci:" + s.Root():                         "it is a model store",
		"oci-archive:" + dir + "/notes":           "it is a folder",
		"oci-archive:" + dir + "/notes/a.txt":     "no tar archive",
		"oci-archive:" + dir + "/none/a.tar":      "there is no folder",
		"oci:" + dir + "/new@" + string(want):     "a destination has no digest",
		"oci-archive:/dev/null":                   "neither a file nor a folder",
		"oci-archive:" + dir + "/new.tar:v1:../x": "invalid",
	} {
		ref, err := ParseRef(to)
		if err == nil {
			_, err = Copy(t.Context(), newClient(t, nil), named(t, s, "m"), Place{Layout: &ref}, Options{})
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %s", to, err, text)
		}
	}
	if after := contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("it changed: %v, %v", before, after)
	}
	if _, err := Open(t.Context(), Ref{Path: dir + "/none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a layout that does not exist: %v", err)
	}
}

// TestLimits reaches the bounds on what archives and layouts say.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	big := write(t, filepath.Join(dir, "l", "index.json"), nil)
	write(t, filepath.Join(dir, "l", "oci-layout"), layoutFile)
	if err := os.Truncate(big, limits.LayoutIndex+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Ref{Path: dir + "/l"}); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("index: %v", err)
	}
	bomb := write(t, filepath.Join(dir, "bomb"), compressed(t, make([]byte, 32<<20)))
	if _, err := Open(t.Context(), Ref{Archive: true, Path: bomb}); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("compressed archive: %v", err)
	}
	header := tarHeader("x/", tar.TypeDir, 0o755, 0)
	many := write(t, filepath.Join(dir, "many"), bytes.Repeat(header, limits.LayoutMembers+1))
	if _, err := Open(t.Context(), Ref{Archive: true, Path: many}); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("members: %v", err)
	}
}

// The error of a full disk names the folder and the remedy, once.
func TestFullDisk(t *testing.T) {
	for _, err := range []error{
		&os.PathError{Op: "write", Path: "part-1", Err: syscall.ENOSPC}, &disk.SpaceError{Dir: "part-1", Need: 10, Free: 3},
	} {
		got := full("out", full("out", err))
		if !errors.Is(got, manifest.ErrNoSpace) || strings.Contains(got.Error(), "part-1") ||
			strings.Count(got.Error(), "free some space") != 1 {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// The files of a header are those of the archive that Go reads, also beyond 8 GiB.
func TestTarHeader(t *testing.T) {
	for _, size := range []int64{0, 1, 8<<30 - 1, 8 << 30, 1 << 40} {
		name := blobPath(digest.FromString("x"))
		h, err := tar.NewReader(bytes.NewReader(tarHeader(name, tar.TypeReg, 0o644, size))).Next()
		if err != nil || h.Name != name || h.Size != size || h.Mode != 0o644 {
			t.Errorf("%d bytes: %+v, %v", size, h, err)
		}
	}
}
