package divide

import (
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
)

// Sizes returns the bytes of the tensors of an image's model, without those of its draft.
func Sizes(image manifest.Image) map[string]int64 {
	sizes := map[string]int64{}
	for _, l := range image.Layers {
		if name, draft := blob.CutDraft(l.Name); l.Kind == manifest.KindTensor && !draft {
			sizes[name] = l.Size
		}
	}
	return sizes
}
