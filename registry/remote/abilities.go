package remote

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/registry/settings"
)

// ErrBodySize means that a registry, or a proxy before it, takes neither a blob at once nor in small chunks.
var ErrBodySize = fault.Register(errors.New("the request is too large for the registry"), fault.Kind{
	Name: "registry/remote.ErrBodySize", Means: "the registry refuses a blob at once, and in the smallest chunks",
	Rank: fault.Registry + 10, Transfer: fault.Gateway,
	Remedy: "raise the limit of the registry, or of the proxy before it: chunks of 256 KiB, the smallest --chunk-size, " +
		"have to pass, or the blob at once",
})

// Abilities is what a registry can do, as far as this session knows. The zero value is a registry that follows
// the specification. All transfers of a [Client] with a registry share one: see [Repository.Learn].
type Abilities struct {
	NoChunks    bool  // a blob is sent in one PUT
	Chunks      bool  // a blob has arrived in chunks
	NoPieces    bool  // a blob cannot be sent while it is made: its chunks would have to be larger
	MaxBody     int64 // larger requests were refused or cut; 0: none was
	NoMount     bool  // without a source repository
	NoMountFrom bool  // nor with one
	NoReferrers bool  // no referrers API
	Referrers   bool  // the referrers API has listed some
	Look        Look  // how to ask for a blob
	Looked      bool  // it has answered whether it has a blob
	silent      error // why it cannot be asked, until that is noted
}

// Look is a way to ask a registry whether it has a blob.
type Look int

// The ways, the best first.
const (
	LookHead Look = iota // HEAD
	LookGet              // GET of the first byte
	LookNone             // it does not say
)

// Abilities returns what the registry can do.
func (r *Repository) Abilities() Abilities {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return r.host.abilities
}

// Learn changes what the registry can do. Several transfers may meet one failure: change must have the same result if
// it is called again. So a size is derived from that of the failed request, not from the one in use by now.
func (r *Repository) Learn(change func(*Abilities)) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	change(&r.host.abilities)
}

// CannotLook records that the registry does not say which blobs it has, and why.
func (r *Repository) CannotLook(why error) {
	r.Learn(func(a *Abilities) {
		if a.Look != LookNone {
			a.Look, a.silent = LookNone, why
		}
	})
}

// NoteLook notes, once, that the registry does not say which blobs it has. It is called when blobs could be sent: a
// registry that refuses everything is an error only.
func (r *Repository) NoteLook() error {
	var why error
	r.Learn(func(a *Abilities) { why, a.silent = a.silent, nil })
	if why == nil {
		return nil
	}
	return r.host.c.Skipped(r.host.name, fmt.Errorf("it does not say which blobs it has, so all are sent: %w", why))
}

// MinChunk is the size below which chunks do not shrink: the smallest that can be set.
const MinChunk = settings.MinChunkSize

// Shrink returns the size to send after n bytes were refused or lost: half of it, or less after more failures in a row,
// but at least the floor. It returns 0 if n was not larger than that.
func Shrink(n, floor int64, failures int) int64 {
	if n <= floor {
		return 0
	}
	return max(n>>max(failures, 1), floor)
}

// AtMost lowers a limit: 0 is none.
func AtMost(limit *int64, n int64) {
	if *limit == 0 || n < *limit {
		*limit = n
	}
}

// Limit returns n, or the limit if it is lower.
func Limit(n, limit int64) int64 {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// onePut lists registries that take chunks badly or not at all: names, or endings that begin with a dot. The list only
// saves the first attempt: TestFallbacks of package registry has each symptom, and uploads work without the list. Each
// entry has the symptom and when it was last reported.
var onePut = []string{
	// 416 to a chunk of more than 4 MiB, July 2026: https://github.com/ocx-sh/ocx/pull/237
	"ghcr.io",
	// No chunks, January 2023: https://cloud.google.com/artifact-registry/docs/reference/docker-api
	".pkg.dev", "gcr.io", ".gcr.io",
	// Amazon ECR: 201 to the first chunk, and a Range that stays there, June 2026:
	// https://github.com/aws/containers-roadmap/issues/2831
	".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".on.aws", ".on.amazonwebservices.com.cn",
	"public.ecr.aws", "ecr-public.aws.com",
}

// guess returns what the registry of an address can probably do.
func guess(addr string) Abilities {
	name, _, _ := strings.Cut(strings.ToLower(addr), ":")
	for _, known := range onePut {
		if name == known || strings.HasPrefix(known, ".") && strings.HasSuffix(name, known) {
			return Abilities{NoChunks: true}
		}
	}
	return Abilities{}
}
