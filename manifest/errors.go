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

// UnknownManifestError describes a manifest that [Decode] does not support. It matches [ErrUnknownManifest].
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
			parts = append(parts, p[0]+" "+clip(p[1]))
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

// NotFoundError reports a name that the store does not have, and similar names that it has. It matches [ErrNotFound].
type NotFoundError struct {
	Name Name
	Near []string // at most three, most similar first
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("model %s not found in the store", e.Name)
	if len(e.Near) > 0 {
		msg += "; similar names: " + strings.Join(e.Near, ", ")
	}
	return msg
}

func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// BusyError reports that a lock of the store could not be acquired in time. It matches [ErrBusy].
type BusyError struct {
	Path    string   // the lock file
	Holders []Holder // the known holders; may be empty
}

// Holder is a process that holds the store's lock.
type Holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (h Holder) String() string { return fmt.Sprintf("%s (process %d)", clip(h.Command), h.PID) }

func (e *BusyError) Error() string {
	who := "another process"
	if len(e.Holders) > 0 {
		names := make([]string, len(e.Holders))
		for i, h := range e.Holders {
			names[i] = h.String()
		}
		who = strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s is held by %s", e.Path, who)
}

func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// KeptError is returned by [Store.Remove] if it removed the names but not their blobs. The blobs only take up space;
// the next Remove or Prune deletes them. Cause is the reason, a [*BusyError] if another process is writing to the
// store. It matches [ErrBlobsKept].
type KeptError struct {
	Names []Name
	Cause error
}

func (e *KeptError) Error() string {
	what := fmt.Sprintf("%d models", len(e.Names))
	if len(e.Names) == 1 {
		what = e.Names[0].String()
	}
	return fmt.Sprintf("removed %s, but its blobs stay until the next `ingot rm` or `ingot prune`: %v", what, e.Cause)
}

func (e *KeptError) Unwrap() error { return e.Cause }

func (e *KeptError) Is(target error) bool { return target == ErrBlobsKept }

// corrupt reports that the content of blob want has digest got.
func corrupt(want, got digest.Digest) error {
	return fmt.Errorf("blob %s: its content has digest %s: %w", want, got, ErrCorrupt)
}

// clip truncates external text for use in a message.
func clip(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
