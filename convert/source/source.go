// Package source opens what an image can be made from: a checkpoint folder, a GGUF file, or another image in the store.
//
// A [Source] is a list of named tensors, each with type, shape and a way to read its bytes, and small files by name.
// What follows (plan, write, export, provenance) knows sources only, and not where their tensors come from. A quantized
// checkpoint (package packed) and a merged adapter (package adapter) are presented as tensors like others.
//
// Contract:
//   - Opening reads headers and small files, and no weights. What headers can reveal is an error then.
//   - Tensors are read with positioned reads, concurrently if need be, and are never mapped.
//   - A source has an identity ([Tensor.Identity], [Source.Image]): if it is equal, the bytes are. A file that changes
//     while it is open is an error of [Tensor.Unchanged].
package source

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// ErrSource reports a source that cannot be imported.
var ErrSource = packed.ErrSource

// Unusable reports whether an error is about the contents of a source, so that another run with it has the same error.
func Unusable(err error) bool {
	var element *quantize.ElementError
	return errors.Is(err, ErrSource) || errors.Is(err, safetensors.ErrTruncated) || errors.As(err, &element)
}

// Names of files in folders and images.
const (
	ConfigName = "config.json"
	IndexName  = "model.safetensors.index.json"
)

// Source is an open source of an image. It is not changed after it was opened, except by [Source.Merge].
type Source struct {
	From  string // the folder or the image, for messages
	Model arch.Model
	Files []File  // to include in the image, sorted by name; config.json is one of them
	Draft *Source // the draft of an image that has one

	tensors    []Tensor // sorted by name
	unlisted   []Tensor
	ignored    []Ignored
	recognized []packed.Recognized
	notes      []string
	unread     []string // keys of config.json that could have a meaning, which its type does not read
	left       []LeftFile
	assumed    []string
	folder     safetensors.Folder      // nil for an image
	checkpoint *safetensors.Checkpoint // of a folder
	image      digest.Digest
	record     settings.Record
	options    Options
	retyped    arch.Retyped           // with Options.As
	published  []byte                 // config.json before that
	gguf       *checkpoint.Checkpoint // of GGUF files
}

// Ignored is a tensor of a quantized checkpoint or of an adapter that is not needed.
type Ignored struct {
	Tensor
	Part   string // of the model that is lost with it; "" = nothing is
	Reason string
}

// LeftFile is a file beside a model that is not imported, such as a projector.
type LeftFile struct {
	Name, Why string
	Size      int64
}

// LeftFiles returns the files beside the model that are not imported.
func (src *Source) LeftFiles() []LeftFile { return src.left }

// Tensors returns the tensors, sorted by name. The caller must not modify them.
func (src *Source) Tensors() []Tensor { return src.tensors }

// Unlisted returns the tensors that are in a checkpoint's shards, but not in its index.
func (src *Source) Unlisted() []Tensor { return src.unlisted }

// Ignored returns the tensors that are not needed.
func (src *Source) Ignored() []Ignored { return src.ignored }

// Recognized lists the packings that were detected, and the tensors that revealed them.
func (src *Source) Recognized() []packed.Recognized { return src.recognized }

// IsImage reports whether the source is an image in the store.
func (src *Source) IsImage() bool { return src.image != "" }

// Image returns the digest of an image's manifest; "" for other sources.
func (src *Source) Image() digest.Digest { return src.image }

// Record returns the choices of an image's creator. It is empty for other sources.
func (src *Source) Record() settings.Record { return src.record }

// Close closes the tensors' files.
func (src *Source) Close() error {
	var errs []error
	if src.Draft != nil {
		errs = append(errs, src.Draft.Close())
	}
	if src.checkpoint != nil {
		errs = append(errs, src.checkpoint.Close())
	}
	if c, ok := src.folder.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// File finds one of Files by name.
func (src *Source) File(name string) (File, bool) {
	for _, f := range src.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// Lookup finds a tensor by name. The caller must not modify it.
func (src *Source) Lookup(name string) (*Tensor, error) {
	if w, ok := find(src.tensors, name); ok {
		return w, nil
	}
	return nil, fmt.Errorf("%s: tensor %q: %w: not found", src.From, name, ErrSource)
}

// Located prefixes an error that starts with a file name with the folder.
func (src *Source) Located(err error) error {
	if src.IsImage() {
		return fmt.Errorf("%s: %w", src.From, err)
	}
	if src.gguf != nil {
		return fmt.Errorf("%s: %w", src.From, err)
	}
	return fmt.Errorf("%s%c%w", src.From, src.separator(), err)
}

// pathOf returns the path of one of Files, for messages.
func (src *Source) pathOf(name string) string { return src.From + string(src.separator()) + name }

// separator returns what stands between the folder and a file's name in a message.
func (src *Source) separator() rune {
	if _, remote := src.folder.(Remote); remote {
		return '/'
	}
	return filepath.Separator
}
