package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	blobformat "github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/redact"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullBlob is a blob with a display name.
type pullBlob struct {
	ocispec.Descriptor
	label string
}

// layerDescriptor is a layer in any encoding. In ollama's, the name has a field of its own.
type layerDescriptor struct {
	ocispec.Descriptor
	Name string `json:"name"`
}

// names returns the names by which a user may select the layer: the tensor's, the file's path, and their last elements.
func (l layerDescriptor) names() []string {
	var list []string
	for _, n := range []string{
		l.Annotations[blobformat.AnnotationTensor], l.Name, l.Annotations[modelspec.AnnotationFilepath],
		l.Annotations[ocispec.AnnotationTitle],
	} {
		if n == "" {
			continue
		}
		list = append(list, n)
		if base := path.Base(n); base != n {
			list = append(list, base)
		}
	}
	return list
}

// draft reports whether a layer belongs to a draft model; see [manifest.Layer.Draft].
func (l layerDescriptor) draft() bool {
	tensors := strings.TrimSuffix(manifest.TensorPath(blobformat.DraftPrefix), ".safetensors")
	return slices.ContainsFunc(l.names(), func(n string) bool {
		return blobformat.IsDraft(n) || strings.HasPrefix(n, blobformat.DraftFolder) || strings.HasPrefix(n, tensors)
	})
}

// selectLayers splits the blobs of a manifest into those that the options select and the others. The config is always
// selected.
func selectLayers(b []byte, opts PullOptions) (wanted, skipped []pullBlob, err error) {
	all, err := manifest.Blobs(b)
	if err != nil {
		return nil, nil, err
	}
	var doc struct {
		Layers []layerDescriptor `json:"layers"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, nil, fmt.Errorf("manifest: %v: %w", err, manifest.ErrInvalidManifest)
	}
	labels, excluded, matched := map[digest.Digest]string{}, map[digest.Digest]bool{}, false
	for _, l := range doc.Layers {
		names := l.names()
		if _, seen := labels[l.Digest]; !seen && len(names) > 0 {
			labels[l.Digest] = redact.Clip(names[0])
		}
		take := !(opts.NoDraft && l.draft()) && (len(opts.Only) == 0 || matchAny(opts.Only, names))
		matched = matched || take
		if was, seen := excluded[l.Digest]; !seen || was { // a blob is needed if any of its layers is selected
			excluded[l.Digest] = !take
		}
	}
	if len(opts.Only) > 0 && !matched {
		return nil, nil, fmt.Errorf("no layer matches %s; use patterns of file paths or tensor names, such as '*.json'",
			strings.Join(opts.Only, ", "))
	}
	for _, d := range all {
		b := pullBlob{d, labels[d.Digest]}
		if b.label == "" {
			b.label = string(d.Digest)[:len("sha256:")+12]
		}
		if excluded[d.Digest] {
			skipped = append(skipped, b)
		} else {
			wanted = append(wanted, b)
		}
	}
	return wanted, skipped, nil
}

func matchAny(globs, names []string) bool {
	for _, g := range globs {
		for _, n := range names {
			if ok, _ := path.Match(g, n); ok {
				return true
			}
		}
	}
	return false
}

// ErrWhole reports options that choose parts of an image that can only be pulled whole.
var ErrWhole = errors.New("only a whole image can be converted")

// modelFiles returns an image that holds a model's files, if the options accept one, and nil for others.
func (p *puller) modelFiles(ctx context.Context, manifestBytes []byte, opts PullOptions) (*foreign.Image, error) {
	if !opts.Files && !opts.Model {
		return nil, nil //nolint:nilnil // it is stored as it is
	}
	img, err := p.parse(ctx, manifestBytes)
	if err != nil || img.Tensors() {
		return nil, err
	}
	if no := img.Model(); no != nil {
		if opts.Model || img.Format == foreign.Ollama {
			return nil, no
		}
		return nil, nil //nolint:nilnil // as above
	}
	if !opts.Files {
		return nil, nil //nolint:nilnil // as above
	}
	if len(opts.Only) > 0 {
		return nil, fmt.Errorf("%w: it is %s; leave out --only, or use `ingot extract` for some of its files",
			ErrWhole, img.Describe())
	}
	return img, nil
}

// parse lists the files of an image. The config is read if it may say more of them; one that cannot be parsed says
// nothing.
func (p *puller) parse(ctx context.Context, manifestBytes []byte) (*foreign.Image, error) {
	img, err := foreign.Parse(manifestBytes, nil)
	if err != nil || !img.Container && img.Format == foreign.Files || img.Format == foreign.Ollama || img.Tensors() {
		return img, err
	}
	config, err := p.s.ReadBlob(img.Config.Digest, manifest.MaxConfigSize)
	if errors.Is(err, manifest.ErrBlobMissing) {
		config, err = p.src.GetBytes(ctx, img.Config, manifest.MaxConfigSize)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return foreign.Parse(manifestBytes, config)
}

// selectBlobs splits the blobs of a manifest into those to fetch and the others.
func (p *puller) selectBlobs(manifestBytes []byte, opts PullOptions) (wanted, skipped []pullBlob, err error) {
	if p.result.Files == nil {
		return selectLayers(manifestBytes, opts)
	}
	return pick(manifestBytes, p.result.Files, p.result.Files.ForModel())
}

// pick splits the blobs of an image by its layers. The config is always picked.
func pick(manifestBytes []byte, img *foreign.Image, layers []foreign.Layer) (wanted, skipped []pullBlob, err error) {
	wants := map[digest.Digest]bool{img.Config.Digest: true}
	for _, l := range layers {
		wants[l.Digest] = true
	}
	all, _, err := selectLayers(manifestBytes, PullOptions{})
	for _, b := range all {
		if wants[b.Digest] {
			wanted = append(wanted, b)
		} else {
			skipped = append(skipped, b)
		}
	}
	return wanted, skipped, err
}

// FilesOptions choose the layers that [Client.FetchFiles] fetches.
type FilesOptions struct {
	Patterns []string // the files, as [foreign.Matches] selects them; none: all
	List     bool     // fetch the manifest and the config only
	// Check is called before any layer is fetched, and may refuse the image. It may be nil.
	Check func(*foreign.Image) error
}

// FilesResult is what [Client.FetchFiles] found.
type FilesResult struct {
	Image  *foreign.Image
	Digest digest.Digest // of the manifest
	Bytes  int64         // that came from the registry
	// Fetched are the blobs that the store lacked. Collections keep them until Done is called, or for [ingest.Age].
	Fetched []ocispec.Descriptor
	Done    func()
}

// FetchFiles fetches the layers of an image that hold the wanted files into the store, and sets no name. The store's
// lock is held for moments only, as by [Client.Pull].
func (c *Client) FetchFiles(ctx context.Context, s *store.Store, name manifest.Name, opts FilesOptions) (*FilesResult,
	error) {
	r, err := c.fetchFiles(ctx, s, name, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (c *Client) fetchFiles(ctx context.Context, s *store.Store, name manifest.Name, opts FilesOptions) (*FilesResult,
	error) {
	p, err := c.newPuller(s, name)
	if err != nil {
		return nil, err
	}
	m, err := p.manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	img, err := p.parse(ctx, m.Bytes)
	if err != nil {
		return nil, err
	}
	r := &FilesResult{Image: img, Digest: m.Digest, Done: func() {}}
	if opts.Check != nil {
		if err := opts.Check(img); err != nil {
			return nil, err
		}
	}
	if opts.List {
		return r, nil
	}
	var layers []foreign.Layer
	for _, l := range img.Layers {
		if img.Container || l.MayHold(opts.Patterns) {
			layers = append(layers, l)
		}
	}
	wanted, skipped, err := pick(m.Bytes, img, layers)
	if err != nil {
		return nil, err
	}
	done, end, err := ingest.Pulling(ctx, s, m.Bytes)
	if err != nil {
		return nil, err
	}
	defer end()
	r.Done = done
	missing, err := p.plan(wanted, skipped)
	if err != nil {
		return nil, err
	}
	if err := p.fetchAll(ctx, missing); err != nil {
		return nil, err
	}
	for _, b := range missing {
		r.Fetched = append(r.Fetched, b.Descriptor)
	}
	r.Bytes = p.result.Bytes
	return r, nil
}
