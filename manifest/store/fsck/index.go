package fsck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// readIndex reads the index, and reports what is wrong with it as a whole.
func (c *checker) readIndex() (err error) {
	if err := c.s.CheckLayout(); errors.Is(err, fs.ErrNotExist) {
		c.addProblem(ProblemIndex, Problem{Path: ocispec.ImageLayoutFile, Detail: "the file does not exist"})
	} else if err != nil {
		return err
	}
	if c.index, err = c.s.ReadIndex(); errors.Is(err, manifest.ErrIndex) {
		c.addProblem(ProblemIndex, Problem{Path: ocispec.ImageIndexFile, Detail: err.Error()})
		return nil
	}
	return err
}

// checkEntries reports what is wrong with the entries of the index.
func (c *checker) checkEntries() {
	seen := map[manifest.Name]bool{}
	for i, d := range c.index.Manifests {
		name, ok := index.NameOf(d)
		switch {
		case ok && seen[name]:
			c.entryProblem(i, d, "duplicate name: only the first entry is found")
		case ok:
			seen[name] = true
		case d.Annotations[ocispec.AnnotationRefName] != "":
			c.entryProblem(i, d, "its name is invalid, so that no command finds it")
		}
		switch {
		case !manifest.ValidDigest(d.Digest):
			detail := fmt.Sprintf("its digest %q is not a sha256 digest", manifest.Clip(string(d.Digest)))
			c.entryProblem(i, d, detail+"; `ingot prune` removes nothing while it is there")
		case c.wrongSize(d):
			detail := fmt.Sprintf("the entry says that its manifest has %d bytes, but it has %d", d.Size, c.files[d.Digest])
			c.entryProblem(i, d, detail)
		default:
			if own := c.ownType(d); own != "" && own != d.MediaType {
				c.entryProblem(i, d, fmt.Sprintf("its media type is %q, that of its manifest %q", manifest.Clip(d.MediaType),
					manifest.Clip(own)))
			}
		}
	}
}

func (c *checker) entryProblem(i int, d ocispec.Descriptor, detail string) {
	path := fmt.Sprintf("%s#%d", ocispec.ImageIndexFile, i)
	c.addProblem(ProblemIndex, Problem{Path: path, Models: []string{index.Label(d)}, Detail: detail})
}

// wrongSize reports whether a descriptor's size differs from the size of its blob.
func (c *checker) wrongSize(d ocispec.Descriptor) bool {
	size, there := c.files[d.Digest]
	return there && c.bad[d.Digest] == nil && size != d.Size
}

// ownType returns the media type that a manifest has for itself, or "".
func (c *checker) ownType(d ocispec.Descriptor) string {
	if own, ok := c.types[d.Digest]; ok {
		return own
	}
	m, _ := c.readManifest(d.Digest)
	if c.types == nil {
		c.types = map[digest.Digest]string{}
	}
	c.types[d.Digest] = m.MediaType
	return m.MediaType
}

// manifestFile is what makes a file a manifest.
type manifestFile struct {
	SchemaVersion int                  `json:"schemaVersion"`
	MediaType     string               `json:"mediaType"`
	Config        *ocispec.Descriptor  `json:"config"`
	Layers        []ocispec.Descriptor `json:"layers"`
	Manifests     []ocispec.Descriptor `json:"manifests"`
	Subject       *ocispec.Descriptor  `json:"subject"`
}

// readManifest returns a manifest in a blob and its text. It is zero for other blobs, and those that are not intact.
func (c *checker) readManifest(d digest.Digest) (m manifestFile, text []byte) {
	size, there := c.files[d]
	if !there || size > manifest.MaxManifestSize || c.bad[d] != nil {
		return m, nil
	}
	text, err := c.s.ReadBlob(d, manifest.MaxManifestSize)
	if err != nil || len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &m) != nil || m.SchemaVersion != 2 ||
		m.Config == nil && m.Layers == nil && m.Manifests == nil {
		return manifestFile{}, nil
	}
	return m, text
}

// findUnnamed lists the manifests that the index does not lead to. They are garbage, or what a lost index named.
func (c *checker) findUnnamed(ctx context.Context) error {
	c.unnamed, c.report.Unnamed = nil, 0
	for d := range c.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.needs[d] != nil {
			continue
		}
		if m, text := c.readManifest(d); text != nil {
			c.unnamed = append(c.unnamed, d)
			if m.Subject == nil {
				c.report.Unnamed++
			}
		}
	}
	slices.Sort(c.unnamed)
	return nil
}

// recoveredName is the name of an image whose own name is lost.
func recoveredName(d digest.Digest) manifest.Name {
	return manifest.Name{Path: "recovered/" + d.Encoded()[:12], Tag: manifest.DefaultTag}
}

// repairIndex corrects entries, or replaces an index that cannot be read by one of the images that are there.
func (c *checker) repairIndex(ctx context.Context) error {
	if c.problem(ocispec.ImageLayoutFile) != nil {
		if err := c.s.WriteLayout(); err != nil {
			return err
		}
		c.fixed(ocispec.ImageLayoutFile, "written")
	}
	if p := c.problem(ocispec.ImageIndexFile); p != nil {
		idx := ocispec.Index{Manifests: c.recovered()}
		if _, err := os.Lstat(c.s.Path(ocispec.ImageIndexFile)); err == nil {
			to, err := quarantine(c.s, ocispec.ImageIndexFile)
			if err != nil {
				return err
			}
			p.Actions = append(p.Actions, "moved to "+to)
		}
		if err := c.s.ReplaceIndex(ctx, idx); err != nil {
			return err
		}
		c.index = idx
		c.fixed(ocispec.ImageIndexFile, fmt.Sprintf("%d manifests found", len(idx.Manifests)))
		return c.followAll(ctx)
	}
	if !slices.ContainsFunc(c.index.Manifests, c.wrongSize) && !c.hasEntryProblem() {
		return nil
	}
	err := c.s.UpdateIndex(ctx, func(idx *ocispec.Index) error {
		lost := c.correct(idx)
		if lost {
			idx.Manifests = append(idx.Manifests, c.recovered()...)
		}
		c.index = *idx
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range c.problems {
		if p.isEntry() {
			p.Actions, p.Fixed = append(p.Actions, "corrected"), true
		}
	}
	return c.followAll(ctx)
}

// followAll finds what the index leads to, and the manifests that it does not lead to.
func (c *checker) followAll(ctx context.Context) error {
	if err := c.follow(ctx); err != nil {
		return err
	}
	return c.findUnnamed(ctx)
}

// correct corrects the entries of an index. lost reports whether the digest of one was lost.
func (c *checker) correct(idx *ocispec.Index) (lost bool) {
	seen := map[manifest.Name]bool{}
	kept := idx.Manifests[:0]
	for _, d := range idx.Manifests {
		if !manifest.ValidDigest(d.Digest) {
			if d.Digest.Validate() == nil { // of an algorithm that another tool uses
				kept = append(kept, d)
			} else {
				lost = true
			}
			continue
		}
		name, ok := index.NameOf(d)
		if !ok && d.Annotations[ocispec.AnnotationRefName] != "" {
			name, ok = recoveredName(d.Digest), true
			d.Annotations[ocispec.AnnotationRefName] = name.String()
		}
		if ok && seen[name] {
			continue
		}
		seen[name] = ok
		if c.wrongSize(d) {
			d.Size = c.files[d.Digest]
		}
		if own := c.ownType(d); own != "" {
			d.MediaType = own
		}
		kept = append(kept, d)
	}
	idx.Manifests = kept
	return lost
}

// recovered returns entries for the manifests that the index does not lead to.
func (c *checker) recovered() (list []ocispec.Descriptor) {
	for _, d := range c.unnamed {
		m, text := c.readManifest(d)
		mediaType, err := manifest.CheckType(ocispec.MediaTypeImageManifest, text)
		if err != nil {
			continue
		}
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(text))}
		if m.Subject != nil {
			desc.Annotations = map[string]string{index.AnnotationSubject: string(m.Subject.Digest)}
		} else if desc, err = c.s.Describe(recoveredName(d), mediaType, text, store.PutOptions{Partial: true}); err != nil {
			continue
		}
		list = append(list, desc)
	}
	return list
}

// problem returns the problem of the index with a path, or nil.
func (c *checker) problem(path string) *Problem { return c.problems[string(ProblemIndex)+" "+path] }

func (c *checker) fixed(path, action string) {
	p := c.problem(path)
	p.Actions, p.Fixed = append(p.Actions, action), true
}

func (c *checker) hasEntryProblem() bool {
	for _, p := range c.problems {
		if p.isEntry() {
			return true
		}
	}
	return false
}

// isEntry reports whether the problem is one of an entry of the index.
func (p *Problem) isEntry() bool {
	return p.Kind == ProblemIndex && p.Path != ocispec.ImageIndexFile && p.Path != ocispec.ImageLayoutFile
}
