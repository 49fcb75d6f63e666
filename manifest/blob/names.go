package blob

import "strings"

// A draft model is part of its target's image. The names of its tensors start with DraftPrefix, those of its files with
// DraftFolder.
const (
	DraftPrefix = "draft."
	DraftFolder = "draft/"
	DraftConfig = DraftFolder + "config.json"
)

// AnnotationTensor is the annotation of a layer with the name of its tensor.
const AnnotationTensor = "org.ingotml.tensor"

// IsDraft reports whether a tensor of an image belongs to its draft model.
func IsDraft(tensor string) bool { return strings.HasPrefix(tensor, DraftPrefix) }

// CutDraft returns a tensor's name in its own model, and whether that is the image's draft.
func CutDraft(tensor string) (name string, draft bool) { return strings.CutPrefix(tensor, DraftPrefix) }
