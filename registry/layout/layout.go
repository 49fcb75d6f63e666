package layout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Layout is a layout or an archive that is read. Its methods are safe for concurrent use. It implements
// [registry.Files].
type Layout struct {
	ref       Ref
	members   map[string]section // of an archive; nil for a folder
	temporary string             // what Close removes; may be empty
	index     index
	attached  func() (map[digest.Digest][]ocispec.Descriptor, error) // the referrers, by subject
}

// Open opens a layout or an archive. If there is none, the error is an [fs.ErrNotExist]; if it is something else, an
// [ErrLayout].
func Open(ctx context.Context, ref Ref) (*Layout, error) {
	l := &Layout{ref: ref}
	if err := l.open(ctx); err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", ref.place(), err)
	}
	l.attached = sync.OnceValues(l.findReferrers)
	return l, nil
}

func (l *Layout) open(ctx context.Context) error {
	info, err := os.Stat(l.ref.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no such file or folder: %w", fs.ErrNotExist)
	case err != nil:
		return err
	case l.ref.Archive && info.IsDir():
		return fmt.Errorf("it is a folder; use %s%s: %w", Scheme, l.ref.Path, ErrLayout)
	case l.ref.Archive && !info.Mode().IsRegular(), !l.ref.Archive && !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("it is neither a file nor a folder: %w", ErrLayout)
	case !l.ref.Archive && !info.IsDir():
		return fmt.Errorf("it is a file; use %s%s if it is an archive: %w", ArchiveScheme, l.ref.Path, ErrLayout)
	}
	if l.ref.Archive {
		file, temporary, err := plain(ctx, l.ref.Path)
		if err != nil {
			return err
		}
		if temporary {
			l.temporary = file
		}
		if l.members, err = scan(ctx, file); err != nil {
			return err
		}
	}
	if err := l.checkVersion(); err != nil {
		return err
	}
	b, err := l.read(ocispec.ImageIndexFile, limits.LayoutIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no %s: %w", ocispec.ImageIndexFile, ErrLayout)
	}
	if err != nil {
		return err
	}
	l.index, err = parseIndex(b)
	return err
}

func (l *Layout) checkVersion() error {
	b, err := l.read(ocispec.ImageLayoutFile, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return notLayout(l.members)
	}
	if err != nil {
		return err
	}
	var version ocispec.ImageLayout
	if err := json.Unmarshal(b, &version); err != nil {
		return fmt.Errorf("%s: %v: %w", ocispec.ImageLayoutFile, err, ErrLayout)
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return fmt.Errorf("its version is %q, not %s: %w",
			manifest.Clip(version.Version), ocispec.ImageLayoutVersion, ErrLayout)
	}
	return nil
}

// at returns the same layout for another image. It need not be closed.
func (l *Layout) at(ref Ref) *Layout {
	other := *l
	other.ref, other.temporary = ref, ""
	return &other
}

// Close removes temporary files.
func (l *Layout) Close() {
	if l.temporary != "" {
		os.Remove(l.temporary)
	}
}

// find returns where a file of the layout is. The error is an fs.ErrNotExist if there is none.
func (l *Layout) find(name string) (section, error) {
	if l.members != nil {
		s, ok := l.members[name]
		if !ok {
			return s, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return s, nil
	}
	file := filepath.Join(l.ref.Path, filepath.FromSlash(name))
	info, err := os.Stat(file)
	if err != nil {
		return section{}, err
	}
	if !info.Mode().IsRegular() { // opening a pipe or a device could wait forever
		return section{}, fmt.Errorf("%s is not a file: %w", file, ErrLayout)
	}
	return section{file, 0, info.Size()}, nil
}

// read reads a small file of the layout.
func (l *Layout) read(name string, limit int64) ([]byte, error) {
	s, err := l.find(name)
	if err != nil {
		return nil, err
	}
	if s.size > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d: %w", name, s.size, limit, manifest.ErrTooLarge)
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, s.size)
	_, err = io.ReadFull(io.NewSectionReader(f, s.at, s.size), b)
	return b, err
}

// blobPath returns the path of a blob in a layout.
func blobPath(d digest.Digest) string {
	return ocispec.ImageBlobsDir + "/" + string(d.Algorithm()) + "/" + d.Encoded()
}

// blob finds a blob. The error is an fs.ErrNotExist if there is none.
func (l *Layout) blob(d digest.Digest) (section, error) {
	if err := manifest.CheckDigest(d); err != nil {
		return section{}, err
	}
	s, err := l.find(blobPath(d))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s has no blob %s: %w", l.ref.place(), d, fs.ErrNotExist)
	}
	return s, err
}

// Manifest reads a manifest and verifies its digest.
func (l *Layout) Manifest(_ context.Context, d digest.Digest) ([]byte, error) {
	if _, err := l.blob(d); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: manifest %s: %w", l.ref.place(), d, manifest.ErrBlobMissing)
	} else if err != nil {
		return nil, err
	}
	b, err := l.read(blobPath(d), manifest.MaxManifestSize)
	if err != nil {
		return nil, fmt.Errorf("%s: manifest %s: %w", l.ref.place(), d, err)
	}
	if got := d.Algorithm().FromBytes(b); got != d {
		return nil, damaged(l.ref, d, got)
	}
	return b, nil
}

// File returns where a blob is. Its content is not verified.
func (l *Layout) File(d ocispec.Descriptor) (path string, offset int64, err error) {
	s, err := l.blob(d.Digest)
	if err == nil && s.size != d.Size {
		err = fmt.Errorf("%s: blob %s has %d bytes, not %d: %w", l.ref.place(), d.Digest, s.size, d.Size, ErrLayout)
	}
	return s.path, s.at, err
}

// damaged reports a blob of a layout that has another digest.
func damaged(ref Ref, want, got digest.Digest) error {
	return fmt.Errorf("%s: blob %s is damaged: its content has digest %s: %w", ref.place(), want, got, ErrLayout)
}

// Referrers lists the manifests with this subject: those that index.json lists, and those of the referrers tag.
func (l *Layout) Referrers(_ context.Context, subject digest.Digest) ([]ocispec.Descriptor, error) {
	all, err := l.attached()
	if err != nil {
		return nil, err
	}
	return remote.CleanReferrers(all[subject], "")
}

// findReferrers reads the manifests without a name that the index lists, and those of referrers tags, for their
// subjects.
func (l *Layout) findReferrers() (map[digest.Digest][]ocispec.Descriptor, error) {
	found := map[digest.Digest][]ocispec.Descriptor{}
	var list []ocispec.Descriptor
	for _, e := range distinct(l.index.entries()) {
		switch {
		case isReferrersTag(e):
			list = append(list, l.children(e.Digest)...)
		case nameOf(e) == "":
			list = append(list, e)
		}
	}
	var read int64
	for _, d := range distinct(list) {
		b, err := l.Manifest(context.Background(), d.Digest)
		if read += int64(len(b)); read > limits.CopyManifests {
			return nil, fmt.Errorf("%s has more than %d MiB of manifests that may be referrers: %w",
				l.ref.place(), limits.CopyManifests>>20, manifest.ErrTooLarge)
		}
		if errors.Is(err, manifest.ErrBlobMissing) || errors.Is(err, manifest.ErrTooLarge) ||
			errors.Is(err, manifest.ErrInvalidManifest) {
			continue // an index may list what was not copied, and anything else
		}
		if err != nil {
			return nil, err
		}
		doc, err := manifest.ParseReferrer(b)
		if err != nil || doc.Subject == nil {
			continue
		}
		kind, err := manifest.CheckType(d.MediaType, b)
		if err != nil {
			continue
		}
		found[doc.Subject.Digest] = append(found[doc.Subject.Digest], doc.Descriptor(kind, b))
	}
	return found, nil
}

// isReferrersTag reports whether an entry is the index of the specification's referrers tag.
func isReferrersTag(d ocispec.Descriptor) bool {
	return strings.HasPrefix(nameOf(d), "sha256-") && manifest.IsIndex(d.MediaType)
}

// distinct returns the descriptors with the first of each digest, so that nothing is read again.
func distinct(list []ocispec.Descriptor) []ocispec.Descriptor {
	seen := map[digest.Digest]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(d ocispec.Descriptor) bool {
		again := seen[d.Digest]
		seen[d.Digest] = true
		return again
	})
}

// children lists the manifests of an index that is a blob. An index that cannot be read has none.
func (l *Layout) children(d digest.Digest) []ocispec.Descriptor {
	index := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: d}
	return l.references(context.Background(), index).Manifests
}

// references reads what a manifest refers to. Other blobs, and what cannot be read, refer to nothing.
func (l *Layout) references(ctx context.Context, d ocispec.Descriptor) manifest.References {
	var doc manifest.References
	if !strings.Contains(d.MediaType, "manifest") && !strings.Contains(d.MediaType, "index") {
		return doc
	}
	b, err := l.Manifest(ctx, d.Digest)
	if err != nil || json.Unmarshal(b, &doc) != nil {
		return manifest.References{}
	}
	return doc
}
