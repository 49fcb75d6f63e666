package store

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Home is a repository that should have a manifest of the store, because the model was pulled from it or pushed to it.
type Home struct {
	Host, Path string
	Manifest   digest.Digest
}

// Homes lists the repositories on a registry host that the index knows, newest entries first. It does not contact the
// registry.
func (s *Store) Homes(ctx context.Context, host string) ([]Home, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	idx, err := s.ReadIndex()
	if err != nil {
		return nil, err
	}
	entries := slices.Clone(idx.Manifests)
	slices.SortStableFunc(entries, func(a, b ocispec.Descriptor) int {
		// Timestamps in RFC 3339 and UTC sort as text.
		return strings.Compare(b.Annotations[index.AnnotationModified], a.Annotations[index.AnnotationModified])
	})
	var list []Home
	listed := map[Home]bool{}
	add := func(path string, d digest.Digest) {
		if h := (Home{host, path, d}); path != "" && !listed[h] {
			listed[h] = true
			list = append(list, h)
		}
	}
	for _, d := range entries {
		name, ok := index.NameOf(d)
		if !ok {
			continue
		}
		if name.Host == host {
			add(name.Path, d.Digest)
		}
		for _, repository := range index.PushedTo(d) {
			if path, ok := strings.CutPrefix(repository, host+"/"); ok {
				add(path, d.Digest)
			}
		}
	}
	return list, nil
}

// NotePushed records in the index where a model was pushed to, so that later pushes can mount its blobs. The record is
// removed with the index entry.
func (s *Store) NotePushed(ctx context.Context, name, to manifest.Name) error {
	repository := to.Host + "/" + to.Path
	idx, err := s.ReadIndex()
	if err != nil {
		return err
	}
	if d, _, ok := index.Lookup(idx, name); !ok || slices.Contains(index.PushedTo(d), repository) {
		return nil
	}
	return s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		want, entry, ok := index.Lookup(*idx, name)
		if !ok {
			return nil // removed in the meantime
		}
		for i, d := range idx.Manifests {
			if n, ok := index.NameOf(d); !ok || n != entry || d.Digest != want.Digest {
				continue
			}
			list := slices.DeleteFunc(index.PushedTo(d), func(r string) bool { return r == repository })
			list = slices.Insert(list, 0, repository)
			if idx.Manifests[i].Annotations == nil {
				idx.Manifests[i].Annotations = map[string]string{}
			}
			idx.Manifests[i].Annotations[index.AnnotationPushed] = strings.Join(list[:min(len(list), index.MaxPushed)], ",")
		}
		return nil
	})
}
