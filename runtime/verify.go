package runtime

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/models/nn"
)

// verifyChunk is the number of rows whose logits are in memory at once.
const verifyChunk = 256

// Compare evaluates the reference's tokens and compares the logits. If the reference has a greedy continuation, it
// compares that too; else greedyEqual is nil. The tokens contain as many image tokens as the pictures have vectors.
func (l *Local) Compare(
	ctx context.Context, ref *Reference, pictures ...Picture,
) (c Comparison, greedyEqual *bool, err error) {
	vocab := int(l.config.Facts().Vocab)
	if ref.Vocab != vocab {
		return c, nil, fmt.Errorf("logits have %d columns, the model's vocabulary %d: %w", ref.Vocab, vocab, ErrReference)
	}
	for i, id := range ref.Tokens {
		if id < 0 || int(id) >= vocab {
			return c, nil, fmt.Errorf("tokens[%d] is %d, the vocabulary has %d: %w", i, id, vocab, ErrReference)
		}
	}
	placed, err := l.placePictures(ctx, ref.Tokens, pictures, math.MaxInt)
	if err != nil {
		return c, nil, err
	}
	if placed != nil && len(placed.expanded) != len(ref.Tokens) {
		return c, nil, fmt.Errorf("the pictures take %d more tokens than the reference has for them: %w",
			len(placed.expanded)-len(ref.Tokens), ErrReference)
	}
	compare := newComparer(ref)
	if err := l.forward(ctx, ref.Tokens, placed, compare.add); err != nil {
		return c, nil, err
	}
	if ref.Greedy != nil {
		ids, err := l.greedy(ctx, Request{
			Prompt: ref.Tokens, Pictures: pictures, MaxTokens: len(ref.Greedy), IgnoreEOS: true, Draft: Draft{Mode: DraftOff},
		})
		if err != nil {
			return c, nil, err
		}
		equal := slices.Equal(ids, ref.Greedy)
		greedyEqual = &equal
	}
	return compare.result(), greedyEqual, nil
}

// forward passes the logits of every position to row, in order. The model's context length does not apply.
func (l *Local) forward(ctx context.Context, tokens []int32, pictures *promptPictures,
	each func(logits []float32)) error {
	seq := cache.NewSequence(l.kinds)
	defer func() {
		_ = l.thread.Do(context.Background(), func() error { seq.Free(); pictures.free(); return nil })
	}()
	for i := 0; pictures != nil && i < len(pictures.distinct); i++ {
		if err := l.encodePicture(ctx, pictures.distinct[i]); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(tokens, verifyChunk) {
		var logits []float32
		if err := l.do(ctx, func() error {
			part := nn.Part{Seq: seq, Tokens: chunk, All: true, Text: len(tokens)}
			hidden := l.model.Forward(nn.NewBatch(l.thread, pictures.part(part, seq.Offset())))
			logits = l.model.Head(hidden).Float32s()
			return nil
		}); err != nil {
			return err
		}
		for r := range slices.Chunk(logits, len(logits)/len(chunk)) {
			each(r)
		}
	}
	return nil
}

// greedy returns the ids that a request generates. Unlike Generate, it accepts video tokens in the prompt.
func (l *Local) greedy(ctx context.Context, r Request) ([]int32, error) {
	if r.MaxTokens == 0 {
		return nil, nil
	}
	var ids []int32
	for e, err := range l.generate(ctx, r) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.IDs...)
	}
	return ids, nil
}

// Probe evaluates a few tokens, and a small picture if the model has a vision tower. Logits and vectors that are not
// finite are an error. It returns the number of tokens.
func (l *Local) Probe(ctx context.Context) (int, error) {
	tokens := l.probeTokens()
	position := -1
	var bad error
	err := l.forward(ctx, tokens, nil, func(logits []float32) {
		position++
		for i, v := range logits {
			if bad == nil && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
				bad = fmt.Errorf("the logit of token %d at position %d is %v: %w", i, position, v, ErrImage)
			}
		}
	})
	if err == nil {
		err = bad
	}
	if err == nil {
		err = l.probeTower(ctx)
	}
	return len(tokens), err
}

// probeTokens returns token ids that are spread over the vocabulary.
func (l *Local) probeTokens() []int32 {
	facts := l.config.Facts()
	tokens := make([]int32, min(8, facts.Context, facts.Vocab))
	for i := range tokens {
		tokens[i] = int32(int64(i) * facts.Vocab / int64(len(tokens)))
	}
	return tokens
}

// CheckStats counts what CheckImage has checked.
type CheckStats struct {
	Blobs   int
	Tensors int
	Bytes   int64
}

// CheckImage hashes every blob of an image, and checks every tensor's name, shape and type against the architecture. It
// does not need the engine.
func CheckImage(ctx context.Context, store *store.Store, entry *store.Entry) (CheckStats, error) {
	var s CheckStats
	for _, l := range entry.Image.Layers {
		if err := hashBlob(ctx, store, l); err != nil {
			return s, err
		}
		s.Blobs++
		s.Bytes += l.Size
	}
	f := files{store, entry.Image}
	config, err := f.config()
	if err != nil {
		return s, err
	}
	blobs, err := f.openBlobs(config, false)
	if err != nil {
		return s, err
	}
	draft, err := f.draft(config)
	if err != nil {
		return s, err
	}
	s.Tensors = len(blobs) + len(draft.blobs)
	_, err = f.tokenizer()
	return s, err
}

func hashBlob(ctx context.Context, store *store.Store, l manifest.Layer) error {
	f, err := store.OpenBlob(l.Digest)
	if err != nil {
		return fmt.Errorf("%s %s: %w", l.Kind, l.Name, err)
	}
	defer f.Close()
	h := sha256.New()
	buffer := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buffer)
		h.Write(buffer[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s %s: blob %s: %w", l.Kind, l.Name, l.Digest, err)
		}
	}
	if got := fmt.Sprintf("sha256:%x", h.Sum(nil)); got != l.Digest.String() {
		return fmt.Errorf("%s %s: the contents of blob %s are damaged (they hash to %s): "+
			"create or pull the model again: %w", l.Kind, l.Name, l.Digest, got, ErrImage)
	}
	return nil
}
