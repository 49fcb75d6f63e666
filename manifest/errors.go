package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Errors for [errors.Is].
var (
	ErrInvalidName     = errors.New("invalid model name")
	ErrInvalidImage    = errors.New("invalid image")      // the Image cannot be encoded
	ErrInvalidManifest = errors.New("invalid manifest")   // damaged or hostile bytes in a known encoding
	ErrUnknownManifest = errors.New("unknown manifest")   // not a model image in any known encoding
	ErrTooLarge        = errors.New("too large")          // exceeds a size limit
	ErrNotStore        = errors.New("not a model store")  // the folder holds something else, or a newer layout
	ErrNotFound        = errors.New("model not found")    // the store has no model of this name
	ErrBlobMissing     = errors.New("blob is missing")    // the store has no blob with this digest
	ErrCorrupt         = errors.New("content is corrupt") // bytes do not match their digest or size
	ErrBusy            = errors.New("store is busy")      // a lock could not be acquired in time
	ErrBlobsKept       = errors.New("blobs were kept")    // Remove removed the names but not their blobs
	ErrHave            = errors.New("blob is here")       // OpenPartial: the store already has the blob
	ErrNoSpace         = errors.New("not enough space")   // the disk has too little free space
)

// UnknownManifestError describes a manifest that [encoding.Decode] does not support. It matches [ErrUnknownManifest].
type UnknownManifestError struct {
	What            string // a description such as "a GGUF model of Ollama"; empty if unknown
	MediaType       string // of the manifest; empty if it has none
	ArtifactType    string
	ConfigMediaType string
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
		return fmt.Sprintf("not a model image: %s, which ingot does not run", e.What)
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
func Clip(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
