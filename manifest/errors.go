package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/opencontainers/go-digest"
)

// Errors for [errors.Is].
var (
	ErrNotFound = fault.Register(errors.New("model not found"), fault.Kind{
		Name: "manifest.ErrNotFound", Means: "the store has no model of this name",
		Rank: fault.Store + 1, Status: fault.NotFound, Transfer: fault.NotFound, Code: fault.CodeModel,
		Remedy: "`ingot ls` lists the models",
		Advice: "`ingot pull` downloads a model, `ingot ls` lists local ones",
	})
	ErrInvalidName = fault.Register(errors.New("invalid model name"), fault.Kind{
		Name: "manifest.ErrInvalidName", Means: "a text is not a model name",
		Rank: fault.Store + 2, Status: fault.Invalid,
	})
	ErrNoSpace = fault.Register(errors.New("not enough space"), fault.Kind{
		Name: "manifest.ErrNoSpace", Means: "the disk has too little free space",
		Rank: fault.Store + 3, Status: fault.Full, Transfer: fault.Full,
	})
	ErrIndex = fault.Register(errors.New("the index of the store is damaged"), fault.Kind{
		Name: "manifest.ErrIndex", Means: "index.json does not say which models the store has",
		Rank:   fault.Store + 9,
		Remedy: "`ingot fsck` checks the store; with --repair it finds the images again, as recovered/...",
	})
	ErrBusy = fault.Register(errors.New("store is busy"), fault.Kind{
		Name: "manifest.ErrBusy", Means: "a lock of the store could not be acquired in time",
		Rank: fault.Store + 5, Status: fault.Unavailable,
	})
	ErrNotStore = fault.Register(errors.New("not a model store"), fault.Kind{
		Name: "manifest.ErrNotStore", Means: "the folder holds something else, or a newer layout",
		Rank:   fault.Store + 6,
		Remedy: "set INGOT_HOME to another folder",
	})
	ErrCorrupt = fault.Register(errors.New("content is corrupt"), fault.Kind{
		Name: "manifest.ErrCorrupt", Means: "bytes do not match their digest or size",
		Rank:   fault.Store + 7,
		Remedy: repair,
	})
	ErrBlobMissing = fault.Register(errors.New("blob is missing"), fault.Kind{
		Name: "manifest.ErrBlobMissing", Means: "the store has no blob with this digest",
		Rank:   fault.Store + 8,
		Remedy: repair,
	})
	ErrInvalidManifest = fault.Register(errors.New("invalid manifest"), fault.Kind{
		Name: "manifest.ErrInvalidManifest", Means: "damaged or hostile bytes in a known encoding",
		Rank: fault.Content + 1, Transfer: fault.Gateway,
	})
	ErrUnknownManifest = fault.Register(errors.New("unknown manifest"), fault.Kind{
		Name: "manifest.ErrUnknownManifest", Means: "not a model image in any known encoding",
		Rank: fault.Content + 2, Transfer: fault.Gateway,
	})
	ErrTooLarge = fault.Register(errors.New("too large"), fault.Kind{
		Name: "manifest.ErrTooLarge", Means: "something exceeds a size limit",
		Rank: fault.Content + 3, Transfer: fault.Gateway,
	})

	ErrInvalidImage = errors.New("invalid image")   // the Image cannot be encoded
	ErrBlobsKept    = errors.New("blobs were kept") // Remove removed the names but not their blobs
	ErrHave         = errors.New("blob is here")    // OpenPartial: the store already has the blob
)

// repair is the remedy for damaged models.
const repair = "create the model again, or try `ingot fsck --repair`"

// UnknownManifestError describes a manifest that [encoding.Decode] does not support. It matches [ErrUnknownManifest].
type UnknownManifestError struct {
	What            string // a description such as "a GGUF model of Ollama"; empty if unknown
	MediaType       string // of the manifest; empty if it has none
	ArtifactType    string
	ConfigMediaType string
	Remedy          string // of What, such as a command; may be empty
}

func (e *UnknownManifestError) Error() string {
	var parts []string
	for _, p := range [][2]string{
		{"media type", e.MediaType},
		{"artifact type", e.ArtifactType},
		{"config type", e.ConfigMediaType},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+Clip(p[1]))
		}
	}
	if e.What != "" {
		text := fmt.Sprintf("not a model image: %s, which ingot does not run", e.What)
		if len(parts) > 0 {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		if e.Remedy != "" {
			text += "; " + e.Remedy
		}
		return text
	}
	if len(parts) == 0 {
		return "not a model image: a manifest without types"
	}
	return "not a model image: " + strings.Join(parts, ", ")
}

func (e *UnknownManifestError) Is(target error) bool { return target == ErrUnknownManifest }

// Corrupt reports that the content of blob want has digest got.
func Corrupt(want, got digest.Digest) error {
	return fmt.Errorf("blob %s: its content has digest %s: %w", want, got, ErrCorrupt)
}

// Clip truncates external text for use in a message.
func Clip(s string) string { return clip.Bytes(s, 120) }
