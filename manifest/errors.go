package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrInvalidName     = errors.New("invalid model name")
	ErrInvalidImage    = errors.New("invalid image")      // an Image that cannot be encoded
	ErrInvalidManifest = errors.New("invalid manifest")   // damaged or hostile bytes in a known encoding
	ErrUnknownManifest = errors.New("unknown manifest")   // not a model image in any known encoding
	ErrTooLarge        = errors.New("too large")          // beyond a size limit
	ErrNotStore        = errors.New("not a model store")  // the folder holds something else, or a newer layout
	ErrNotFound        = errors.New("model not found")    // no such name in the store
	ErrBlobMissing     = errors.New("blob is missing")    // a digest that the store does not have
	ErrCorrupt         = errors.New("content is corrupt") // bytes that do not match their digest or size
	ErrBusy            = errors.New("store is busy")      // a lock was not free in time
	ErrBlobsKept       = errors.New("blobs were kept")    // Remove dropped the name and left the blobs
	ErrHave            = errors.New("blob is here")       // OpenPartial has nothing to fetch
	ErrNoSpace         = errors.New("not enough space")   // the disk cannot take what is to come
)

// UnknownManifestError tells what a manifest is that [Decode] cannot read. It is an [ErrUnknownManifest].
type UnknownManifestError struct {
	What            string // in words, such as "a GGUF model of Ollama"; empty when not known
	MediaType       string // of the manifest; empty when it does not say
	ArtifactType    string
	ConfigMediaType string
}

func (e *UnknownManifestError) Error() string {
	var parts []string
	for _, p := range [][2]string{{"media type", e.MediaType}, {"artifact type", e.ArtifactType}, {"config type", e.ConfigMediaType}} {
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

// NotFoundError names the model that the store does not have, and names that resemble it. It is an [ErrNotFound].
type NotFoundError struct {
	Name Name
	Near []string // at most three, nearest first
}

func (e *NotFoundError) Error() string {
	msg := fmt.Sprintf("model %s not found in the store", e.Name)
	if len(e.Near) > 0 {
		msg += "; near: " + strings.Join(e.Near, ", ")
	}
	return msg
}

func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// BusyError is returned when a lock of the store was not free in time. It is an [ErrBusy].
type BusyError struct {
	Path    string   // the lock file
	Holders []Holder // those that could be told; may be empty
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

// KeptError is returned by [Store.Remove] when the names are gone and blobs are still there, which costs space and
// nothing else: the next Remove or Prune takes them. It is an [ErrBlobsKept]; Cause says why, a [*BusyError]
// when somebody is writing to the store.
type KeptError struct {
	Names []Name
	Cause error
}

func (e *KeptError) Error() string {
	what := fmt.Sprintf("%d models", len(e.Names))
	if len(e.Names) == 1 {
		what = e.Names[0].String()
	}
	return fmt.Sprintf("removed %s, but blobs stay until a later removal or prune: %v", what, e.Cause)
}

func (e *KeptError) Unwrap() error { return e.Cause }

func (e *KeptError) Is(target error) bool { return target == ErrBlobsKept }

// corrupt says that what is stored under want has another digest.
func corrupt(want, got digest.Digest) error {
	return fmt.Errorf("blob %s: its bytes have digest %s: %w", want, got, ErrCorrupt)
}

// clip bounds text from outside for use in a message.
func clip(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
