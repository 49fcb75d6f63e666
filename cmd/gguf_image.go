package cmd

import (
	"context"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/gguf/image"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/ollama/exchange"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
)

// importGGUF makes a model of an image of Ollama whose weights are a GGUF file.
func (a *app) importGGUF(ctx context.Context, name manifest.Name, i *image.Image, json bool) (convert.Result, error) {
	from, left, err := i.Modelfile()
	if err != nil {
		return convert.Result{}, err
	}
	options := convert.Options{Version: Version, Memory: write.DefaultMemory, Remote: i}
	result, _, err := a.build(ctx, name, from, options, createOptions{json: json})
	if err != nil {
		return convert.Result{}, err
	}
	for _, w := range left {
		a.note("note: %s", w)
	}
	return result, nil
}

// convertPulled makes a model of a GGUF file that was pulled, and sets the result's digest to the model's.
func (a *app) convertPulled(ctx context.Context, st *store.Store, r *registry.PullResult, json bool) error {
	result, err := a.importGGUF(ctx, r.Name, image.Stored(st, r.Name, r.GGUF), json)
	if err != nil {
		return err
	}
	r.Done()
	a.note("note: %s is made of a GGUF file (%s), which `ingot prune` removes", r.Name, size(r.GGUF.Model.Size))
	r.Digest = result.Digest
	return nil
}

// copyGGUF makes a model of a GGUF file in Ollama's store. The digest is "" if the model has none.
func (a *app) copyGGUF(
	ctx context.Context, from ollama.Name, st *store.Store, to manifest.Name, format string, json bool,
) (digest.Digest, error) {
	other, err := exchange.Open("")
	if err != nil {
		return "", err
	}
	g, err := other.GGUF(from)
	if g == nil || err != nil {
		return "", err
	}
	if err := other.Verify(ctx, g.Model); err != nil {
		return "", err
	}
	result, err := a.importGGUF(ctx, to, &image.Image{
		Name: from.String(), GGUF: g, Path: other.BlobPath, Read: other.ReadBlob,
	}, json)
	if err != nil || format == "" {
		return result.Digest, err
	}
	return st.Copy(ctx, to, to, format)
}
