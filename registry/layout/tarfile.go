package layout

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tarFile is an archive that is written. Its members and their places are known before the first blob is copied, so
// that blobs are written several at a time.
type tarFile struct {
	ref  Ref
	old  *Layout // the archive that is replaced; nil if there is none
	work *workplace
	f    *os.File

	at   map[string]int64   // where the contents of each member begin
	kept map[string]section // members of the old archive that stay, except what the image has too
}

// member is a file in an archive. Its bytes are nil if they are copied later.
type member struct {
	name  string
	size  int64
	bytes []byte
}

// openArchive prepares an archive. The images of an archive that exists are kept.
func openArchive(ctx context.Context, ref Ref, image *registry.Image, warn func(string)) (*tarFile, error) {
	dir := filepath.Dir(ref.Path)
	fail := func(err error) (*tarFile, error) { return nil, fmt.Errorf("%s: %w", ref.place(), full(dir, err)) }
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fail(fmt.Errorf("there is no folder %s: %w", dir, fs.ErrNotExist))
	}
	work, err := openWork(ctx, filepath.Join(dir, workName+"-"+filepath.Base(ref.Path)), func() {
		warn(fmt.Sprintf("waiting for another process that writes %s", ref.place()))
	})
	if err != nil {
		return fail(err)
	}
	t := &tarFile{ref: ref, work: work, at: map[string]int64{}}
	if err := t.prepare(ctx, image); err != nil {
		t.close()
		return nil, full(dir, err)
	}
	return t, nil
}

func (t *tarFile) prepare(ctx context.Context, image *registry.Image) error {
	old, err := Open(ctx, Ref{Archive: true, Path: t.ref.Path})
	switch {
	case err == nil:
		t.old = old
	case errors.Is(err, ErrLayout):
		return fmt.Errorf("%w; choose another file", err)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	index := emptyIndex()
	if t.old != nil {
		index = t.old.index
	}
	root, referrers := entriesOf(image, t.ref.Name)
	index.add(root, referrers)
	list, err := t.members(ctx, index, image)
	if err != nil {
		return err
	}
	if t.f, err = t.work.temp(); err != nil {
		return err
	}
	return t.layOut(list)
}

// members lists the files of the archive by name.
func (t *tarFile) members(ctx context.Context, index index, image *registry.Image) ([]member, error) {
	b, err := index.marshal()
	if err != nil {
		return nil, err
	}
	list := []member{
		{ocispec.ImageLayoutFile, int64(len(layoutFile)), layoutFile}, {ocispec.ImageIndexFile, int64(len(b)), b},
	}
	listed := map[string]bool{}
	for _, m := range documents(image) {
		if name := blobPath(m.Digest); !listed[name] {
			listed[name] = true
			list = append(list, member{name, int64(len(m.Bytes)), m.Bytes})
		}
	}
	for _, d := range image.Blobs {
		if name := blobPath(d.Digest); !listed[name] {
			listed[name] = true
			list = append(list, member{name, d.Size, nil})
		}
	}
	t.kept = map[string]section{}
	if t.old != nil {
		for name, s := range t.old.reachable(ctx, index.entries()) {
			if !listed[name] {
				t.kept[name] = s
				list = append(list, member{name, s.size, nil})
			}
		}
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// layOut writes everything but the contents that are copied later.
func (t *tarFile) layOut(list []member) error {
	var at int64
	write := func(b []byte) error {
		_, err := t.f.WriteAt(b, at)
		at += int64(len(b))
		return err
	}
	var need int64
	for _, m := range list {
		need += m.size + 3*block
	}
	if err := checkSpace(filepath.Dir(t.ref.Path), need); err != nil {
		return err
	}
	if err := disk.Preallocate(t.f, need); err != nil {
		return err
	}
	made := map[string]bool{".": true}
	for _, m := range list {
		var folders []string
		for dir := path.Dir(m.name); !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			folders = append([]string{dir}, folders...)
		}
		for _, dir := range folders {
			if err := write(tarHeader(dir+"/", tar.TypeDir, 0o755, 0)); err != nil {
				return err
			}
		}
		if err := write(tarHeader(m.name, tar.TypeReg, 0o644, m.size)); err != nil {
			return err
		}
		t.at[m.name] = at
		if _, err := t.f.WriteAt(m.bytes, at); err != nil {
			return err
		}
		at += (m.size + block - 1) / block * block
	}
	return t.f.Truncate(at + 2*block) // an archive ends with two empty blocks
}

// block is the unit of tar.
const block = 512

// tarHeader returns the header of a member. It has no date and no owner.
func tarHeader(name string, kind byte, mode int64, size int64) []byte {
	var b bytes.Buffer
	h := tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: size, ModTime: time.Unix(0, 0)}
	_ = tar.NewWriter(&b).WriteHeader(&h) // a buffer takes everything
	return b.Bytes()
}

func (t *tarFile) close() {
	if t.f != nil {
		t.f.Close()
	}
	if t.old != nil {
		t.old.Close()
	}
	t.work.close()
}

func (t *tarFile) explain(err error) error { return full(filepath.Dir(t.ref.Path), err) }

// has copies a blob from the archive that is replaced, if it has it.
func (t *tarFile) has(ctx context.Context, d ocispec.Descriptor, progress func(int64)) (bool, error) {
	if t.old == nil {
		return false, nil
	}
	c, err := layoutSource{t.old}.open(ctx, d)
	if err != nil {
		return false, nil
	}
	defer c.Close()
	_, err = t.put(ctx, d, c, progress)
	if errors.Is(err, remote.ErrDigest) {
		return false, nil
	}
	return err == nil, err
}

func (t *tarFile) put(ctx context.Context, d ocispec.Descriptor, c *content, progress func(int64)) (way, error) {
	at, ok := t.at[blobPath(d.Digest)]
	if !ok {
		return copied, fmt.Errorf("blob %s has no place in the archive", d.Digest)
	}
	return copied, pour(ctx, io.NewOffsetWriter(t.f, at), c, d, progress)
}

func (t *tarFile) finish(ctx context.Context) (string, error) {
	for name, s := range t.kept {
		if err := t.keep(ctx, t.at[name], s); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := disk.Publish(t.f, 0o644, t.ref.Path); err != nil {
		return "", err
	}
	return t.ref.String(), disk.SyncDir(filepath.Dir(t.ref.Path))
}

// keep copies a member of the old archive as it is.
func (t *tarFile) keep(ctx context.Context, at int64, s section) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(io.NewOffsetWriter(t.f, at), withContext{ctx, io.NewSectionReader(f, s.at, s.size)})
	if err == nil && n != s.size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// reachable lists the files of the blobs that entries lead to. What is not there is left out.
func (l *Layout) reachable(ctx context.Context, entries []ocispec.Descriptor) map[string]section {
	found := map[string]section{}
	seen := map[digest.Digest]bool{}
	for len(entries) > 0 {
		d := entries[0]
		entries = entries[1:]
		if seen[d.Digest] {
			continue
		}
		seen[d.Digest] = true
		s, err := l.blob(d.Digest)
		if err != nil {
			continue
		}
		found[blobPath(d.Digest)] = s
		doc := l.references(ctx, d)
		entries = append(append(append(entries, doc.Layers...), doc.Blobs...), doc.Manifests...)
		if doc.Config != nil {
			entries = append(entries, *doc.Config)
		}
	}
	return found
}
