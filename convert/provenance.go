package convert

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ProvenanceType is the artifact type of provenance records, and the media type of their layers.
const ProvenanceType = "application/vnd.ingotml.provenance.v1+json"

// Provenance records an image's sources and how it was made. It contains no folder and no time: the same sources,
// options and program version give the same record.
type Provenance struct {
	Program string  `json:"program"`
	From    Origin  `json:"from"`
	Draft   *Origin `json:"draft,omitempty"` // from the DRAFT line
	// Adapters are in the order of the ADAPTER lines. Their tensors are among the sources.
	Adapters     []AdapterOrigin `json:"adapters,omitempty"`
	Quantization *Precision      `json:"quantization,omitempty"` // as requested: type, rules, recipe
	Tensors      []MadeTensor    `json:"tensors"`                // in the image's order; the draft's start with "draft."
	Dropped      []DroppedSource `json:"dropped,omitempty"`
}

// Origin is a checkpoint folder, or an image in the store.
type Origin struct {
	Image digest.Digest `json:"image,omitempty"` // manifest digest
	Files []OriginFile  `json:"files,omitempty"` // files read, sorted by name
}

// AdapterOrigin is a merged adapter.
type AdapterOrigin struct {
	Origin
	Merged []MergedTensor `json:"merged"`
}

// OriginFile is a file of a checkpoint. Its name is relative to the folder.
type OriginFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // only if requested
}

// MadeTensor is a tensor of the image.
type MadeTensor struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Rule      string         `json:"rule"`
	Transform []string       `json:"transform"`
	Sources   []SourceTensor `json:"sources"`
}

// SourceTensor is a tensor in a checkpoint's file, with the checksum of its bytes there, or a blob in the store.
type SourceTensor struct {
	Name   string            `json:"name"`
	File   string            `json:"file,omitempty"`
	Blob   digest.Digest     `json:"blob,omitempty"`
	DType  safetensors.DType `json:"dtype"`
	Shape  []int64           `json:"shape"`
	SHA256 string            `json:"sha256,omitempty"`
}

// DroppedSource is a tensor of the checkpoint that was neither used nor read.
type DroppedSource struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// provenance makes the record of a written image.
func (p *prepared) provenance(ctx context.Context, written *Written, opts Options) (*Provenance, error) {
	r := &Provenance{Program: "ingot " + cmp.Or(opts.Version, "devel"), Tensors: []MadeTensor{}}
	var err error
	if r.From, err = p.inv.origin(ctx, opts.HashFiles); err != nil {
		return nil, err
	}
	if p.draft != nil {
		draft, err := p.draft.origin(ctx, opts.HashFiles)
		if err != nil {
			return nil, err
		}
		r.Draft = &draft
	}
	if r.Adapters, err = p.adapterOrigins(ctx, opts.HashFiles); err != nil {
		return nil, err
	}
	if q := opts.Precision; q.Type != 0 || q.Draft != 0 || q.Uniform || len(q.Rules) > 0 {
		r.Quantization = &q
	}
	for _, t := range p.plan.Tensors {
		made := MadeTensor{Name: t.Name, Type: t.Type, Rule: t.Rule, Transform: t.Transform}
		for _, s := range t.Sources {
			for _, f := range s.weight.files() {
				source, err := written.sourceTensor(f)
				if err != nil {
					return nil, err
				}
				made.Sources = append(made.Sources, source)
			}
		}
		r.Tensors = append(r.Tensors, made)
	}
	for _, d := range p.plan.Dropped {
		r.Dropped = append(r.Dropped, DroppedSource{d.Name, d.File, d.Reason})
	}
	return r, nil
}

func (w *Written) sourceTensor(f weight) (SourceTensor, error) {
	s := SourceTensor{Name: f.Name, DType: f.DType, Shape: append([]int64{}, f.Shape...)}
	if f.store != nil {
		s.Blob = f.layer.Digest
		return s, nil
	}
	sum, err := w.checksums.lookup(f)
	s.File, s.SHA256 = f.file, hex.EncodeToString(sum[:])
	return s, err
}

// origin describes the source of an inventory.
func (inv *Inventory) origin(ctx context.Context, hash bool) (Origin, error) {
	if inv.stored {
		return Origin{Image: inv.image}, nil
	}
	var o Origin
	add := func(name string, size int64, sum []byte) {
		f := OriginFile{Name: name, Size: size}
		if hash {
			f.SHA256 = hex.EncodeToString(sum)
		}
		o.Files = append(o.Files, f)
	}
	for _, f := range inv.Files {
		if f.Source != "" {
			add(f.Name, f.origin.size, f.origin.sum[:])
		}
	}
	for _, f := range inv.checkpoint.Files() {
		w, ok := inv.weightIn(f)
		if !ok {
			continue
		}
		var sum []byte
		if hash {
			var err error
			if sum, err = hashFile(ctx, w.path); err != nil {
				return o, err
			}
			if err := w.unchanged(); err != nil {
				return o, err
			}
		}
		add(w.file, w.size, sum)
	}
	slices.SortFunc(o.Files, func(a, b OriginFile) int { return cmp.Compare(a.Name, b.Name) })
	return o, nil
}

// weightIn returns any tensor in a file. It has the file's size and time at opening.
func (inv *Inventory) weightIn(f *safetensors.File) (weight, bool) {
	for _, list := range [][]weight{inv.weights, inv.unlisted} {
		for _, w := range list {
			for _, part := range w.files() {
				if part.path == f.Path() {
					return part, true
				}
			}
		}
	}
	return weight{}, false // no tensor of the file is used
}

func hashFile(ctx context.Context, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, slabSize)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return h.Sum(nil), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
}

// attach stores the provenance record as a referrer of the image, together with the records of its source images. It is
// called just before the image gets its name. If it gets none, the next collection removes both.
func (p *prepared) attach(ctx context.Context, store *store.Store, written *Written, opts Options) error {
	encoded, _, err := manifest.EncodeModelPack(written.Image)
	if err != nil {
		return err
	}
	image := digest.FromBytes(encoded)
	if p.inv.image == image {
		return nil // the image is identical to its source
	}
	record, err := p.provenance(ctx, written, opts)
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	data, err := marshal(record)
	if err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	own, size, err := store.PutBytes(ctx, data)
	if err != nil {
		return err
	}
	layers := []ocispec.Descriptor{recordLayer(own, size, image)}
	for _, inv := range []*Inventory{p.inv, p.draft} {
		if inv == nil || inv.image == "" {
			continue
		}
		earlier, err := provenanceLayers(ctx, store, inv.image)
		if err != nil {
			return err
		}
		for _, l := range earlier {
			same := func(have ocispec.Descriptor) bool {
				return have.Digest == l.Digest && have.Annotations[annotationImage] == l.Annotations[annotationImage]
			}
			if !slices.ContainsFunc(layers, same) && len(layers) < maxRecords {
				layers = append(layers, l)
			}
		}
	}
	_, err = store.Attach(ctx, manifest.Artifact{
		Type:    ProvenanceType,
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: image, Size: int64(len(encoded))},
		Layers:  layers,
	})
	return err
}

// annotationImage is the annotation of a layer with the digest of the image that its record describes.
const annotationImage = "org.ingotml.subject"

// maxRecords bounds the records of source images that an image carries.
const maxRecords = 64

func recordLayer(d digest.Digest, size int64, image digest.Digest) ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: ProvenanceType, Digest: d, Size: size,
		Annotations: map[string]string{
			ocispec.AnnotationTitle: "provenance-" + image.Encoded()[:12] + ".json",
			annotationImage:         string(image),
		},
	}
}

// provenanceLayers lists the layers of an image's provenance records, the image's own first.
func provenanceLayers(ctx context.Context, store *store.Store, image digest.Digest) ([]ocispec.Descriptor, error) {
	list, err := store.Referrers(ctx, image, ProvenanceType)
	if err != nil {
		return nil, err
	}
	var own, earlier []ocispec.Descriptor
	for _, d := range list {
		b, err := store.ReadBlob(d.Digest, manifest.MaxManifestSize)
		if err != nil {
			return nil, err
		}
		var doc ocispec.Manifest
		if err := json.Unmarshal(b, &doc); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: %w", d.Digest, manifest.ErrInvalidManifest, err)
		}
		for _, l := range doc.Layers {
			switch {
			case l.MediaType != ProvenanceType: // added by someone else
			case l.Annotations[annotationImage] == string(image):
				own = append(own, l)
			default:
				earlier = append(earlier, l)
			}
		}
	}
	return append(own, earlier...), nil
}

// ImageProvenance is a provenance record and the image that it describes.
type ImageProvenance struct {
	Image digest.Digest `json:"image"`
	Provenance
}

// ReadProvenance returns the provenance records in the store: those of the image, then those of the images that it was
// made from. An image that was pulled from a registry has none, because a pull does not fetch referrers.
func ReadProvenance(ctx context.Context, store *store.Store, image digest.Digest) ([]ImageProvenance, error) {
	layers, err := provenanceLayers(ctx, store, image)
	if err != nil {
		return nil, err
	}
	var out []ImageProvenance
	for _, l := range layers {
		r := ImageProvenance{Image: digest.Digest(l.Annotations[annotationImage])}
		if err := r.Image.Validate(); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: it does not name the image that it describes",
				l.Digest, manifest.ErrInvalidManifest)
		}
		data, err := store.ReadBlob(l.Digest, maxFile)
		if err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
		if err := json.Unmarshal(data, &r.Provenance); err != nil {
			return nil, fmt.Errorf("provenance %s: %w: %w", l.Digest, manifest.ErrInvalidManifest, err)
		}
		out = append(out, r)
	}
	return out, nil
}
