package ollama

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/opencontainers/go-digest"
)

// capInsert is Ollama's name for filling in the middle.
const capInsert = "insert"

// facts are what the descriptions of a model say beyond its image's configuration. They are read from its files.
type facts struct {
	capabilities []string
	parent       digest.Digest  // of the image that it was made from; empty: of none that is known
	info         map[string]any // short, see [modelInfo]; nil: not read yet
}

// factsCache holds the facts of images. Reading those of one takes as much memory as its vocabulary, so one is read at
// a time.
type factsCache struct {
	mu sync.Mutex
	of map[digest.Digest]*facts
}

// maxFacts limits the cache. Beyond that, it begins anew.
const maxFacts = 256

// get returns the facts of a model, with its info if that is wanted.
func (k *factsCache) get(ctx context.Context, l *store.Listing, e *store.Entry, info bool) (facts, error) {
	st := l.Store
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.of[e.Digest]
	if f == nil {
		style, err := prompt.Open(st, e)
		if err != nil {
			return facts{}, err
		}
		f = &facts{capabilities: capabilities(st, e, style), parent: parent(ctx, l, e.Digest)}
		if len(k.of) >= maxFacts {
			k.of = nil
		}
		if k.of == nil {
			k.of = map[digest.Digest]*facts{}
		}
		k.of[e.Digest] = f
	}
	if info && f.info == nil {
		read, err := modelInfo(ctx, st, e, false)
		if err != nil {
			return facts{}, err
		}
		f.info = read
	}
	return *f, nil
}

// verboseInfo returns a model's info with its vocabulary, which is not kept.
func (k *factsCache) verboseInfo(ctx context.Context, st *store.Store, e *store.Entry) (map[string]any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return modelInfo(ctx, st, e, true)
}

// capabilities returns a model's capabilities under Ollama's names.
func capabilities(st *store.Store, e *store.Entry, style *prompt.Style) []string {
	out := slices.Clone(e.Image.Config.Capabilities)
	if len(out) == 0 { // another tool's image, which does not list them
		out = []string{manifest.CapCompletion}
	}
	if style.Fills() || infills(st, e) {
		out = append(out, capInsert)
	}
	return out
}

// infills reports whether a model generates text and its vocabulary has tokens for a gap.
func infills(st *store.Store, e *store.Entry) bool {
	p, err := processor.Open(st, e)
	return err == nil && p.CheckHead() == nil && p.Infill() != nil
}

// parent returns the digest of the image that an image was made from. An image without a readable record has none.
func parent(ctx context.Context, l *store.Listing, d digest.Digest) digest.Digest {
	list, err := provenance.Read(ctx, l, d)
	if err != nil {
		return ""
	}
	for _, r := range list {
		if r.Image == d && r.From.Image != d {
			return r.From.Image
		}
	}
	return ""
}

// longList is the number of elements from which a list is shown only if the request is verbose.
const longList = 6

// modelInfo returns the metadata that a GGUF file of the model has, which clients know. A model that GGUF cannot
// express has only what its image's configuration says. Long lists are empty unless verbose.
func modelInfo(ctx context.Context, st *store.Store, e *store.Entry, verbose bool) (map[string]any, error) {
	c := e.Image.Config
	info := map[string]any{}
	pairs, err := export.GGUFMetadata(ctx, st, e)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	for _, p := range pairs {
		if p.Key != "general.name" {
			putValue(info, p, verbose)
		}
	}
	put := func(key string, v any, known bool) {
		if _, there := info[key]; known && !there {
			info[key] = v
		}
	}
	put("general.architecture", c.ModelType, c.ModelType != "")
	put("general.basename", c.Name, c.Name != "")
	put("general.parameter_count", c.Params, c.Params > 0)
	put(fmt.Sprint(info["general.architecture"], ".context_length"), c.ContextLength, c.ContextLength > 0)
	put(fmt.Sprint(info["general.architecture"], ".embedding_length"), c.EmbeddingLength, c.EmbeddingLength > 0)
	return info, nil
}

func putValue(info map[string]any, p gguf.Pair, verbose bool) {
	if p.Value.IsArray && p.Value.Len >= longList && !verbose {
		info[p.Key] = []any{}
		return
	}
	info[p.Key] = p.Value.Plain()
}
