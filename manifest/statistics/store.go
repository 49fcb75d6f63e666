package statistics

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Type is the artifact type of statistics, and the media type of their layer.
const Type = "application/vnd.ingotml.statistics.v1+safetensors"

// Annotations of an artifact, so that one can be chosen without reading its blob.
const (
	annotationTokens = "org.ingotml.statistics.tokens"
	annotationBlock  = "org.ingotml.statistics.block"
)

// Weights returns the identity of an image's weights: the digest of the names and digests of its tensors, without those
// of a draft. Images that differ in texts and parameters only have the same one.
func Weights(img manifest.Image) digest.Digest {
	var list []string
	for _, l := range img.Layers {
		if l.Kind == manifest.KindTensor && !l.Draft() {
			list = append(list, l.Name+" "+string(l.Digest))
		}
	}
	slices.Sort(list)
	b, _ := json.Marshal(list) // strings
	return digest.FromBytes(b)
}

// Attach stores a set as a referrer of the image that it is about, and returns the digest of the set. subject describes
// the image's manifest.
func (s *Set) Attach(ctx context.Context, st *store.Store, subject ocispec.Descriptor) (digest.Digest, error) {
	release, err := st.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	w, err := st.NewBlob(ctx)
	if err != nil {
		return "", err
	}
	defer w.Abort()
	if err := s.Write(w); err != nil {
		return "", err
	}
	d, size, err := w.Commit()
	if err != nil {
		return "", err
	}
	_, err = st.Attach(ctx, manifest.Artifact{
		Type: Type,
		Subject: ocispec.Descriptor{
			MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size,
		},
		Layers: []ocispec.Descriptor{{
			MediaType: Type, Digest: d, Size: size,
			Annotations: map[string]string{ocispec.AnnotationTitle: "statistics.safetensors"},
		}},
		Annotations: map[string]string{
			annotationTokens: fmt.Sprint(s.Tokens), annotationBlock: fmt.Sprint(s.Block),
		},
	})
	return d, err
}

// Found is a set of statistics on disk.
type Found struct {
	*Set
	Digest digest.Digest
	file   *os.File
}

// Close closes the file.
func (f *Found) Close() error { return f.file.Close() }

// Find returns the statistics that were stored last for an image, or nil if there are none. Its blob's digest is
// verified.
func Find(ctx context.Context, st *store.Store, image digest.Digest) (*Found, error) {
	list, err := st.Referrers(ctx, image, Type)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	last := list[len(list)-1]
	b, err := st.ReadBlob(last.Digest, manifest.MaxManifestSize)
	if err != nil {
		return nil, err
	}
	var doc ocispec.Manifest
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStatistics, last.Digest, err)
	}
	for _, l := range doc.Layers {
		if l.MediaType != Type {
			continue
		}
		f, err := Open(st.BlobPath(l.Digest))
		if err == nil && f.Digest != l.Digest {
			_ = f.Close()
			err = fmt.Errorf("%w: blob %s is damaged; calibrate again", ErrStatistics, l.Digest)
		}
		return f, err
	}
	return nil, fmt.Errorf("%w: %s has no layer of type %s", ErrStatistics, last.Digest, Type)
}

// Open opens a file of statistics. The caller closes it after the last use of the set.
func Open(path string) (*Found, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &Found{file: file}
	info, err := file.Stat()
	if err == nil {
		f.Digest, err = digest.FromReader(file)
	}
	if err == nil {
		f.Set, err = Parse(file, info.Size())
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
