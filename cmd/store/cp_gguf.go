package store

import (
	"context"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/convert/image"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/ollama/exchange"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
)

// copyGGUF makes a model of a GGUF file in Ollama's store. The digest is "" if the model has none.
func copyGGUF(
	ctx context.Context, a *cli.App, from ollama.Name, st *store.Store, to manifest.Name, format string, json bool,
) (digest.Digest, error) {
	other, err := exchange.Open("")
	if err != nil {
		return "", err
	}
	files, err := other.Files(from)
	if files == nil || err != nil {
		return "", err
	}
	for _, l := range files.ForModel() {
		if l.Role != foreign.Weights {
			continue // texts are verified when they are read
		}
		if err := other.Verify(ctx, l.Descriptor); err != nil {
			return "", err
		}
	}
	i := image.Stored(st, to, files)
	i.Name, i.Blob, i.Read = from.String(), other.OpenBlob, other.ReadBlob
	result, err := models.ImportImage(ctx, a, to, i, json)
	if err != nil || format == "" {
		return result.Digest, err
	}
	return st.Copy(ctx, to, to, format)
}
