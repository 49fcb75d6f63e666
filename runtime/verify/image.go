package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
)

// Stats counts what CheckImage has checked.
type Stats struct {
	Blobs   int
	Tensors int
	Bytes   int64
}

// Image hashes every blob of an image, and checks every tensor's name, shape and type against the architecture. It
// does not need the engine.
func Image(ctx context.Context, store *store.Store, entry *store.Entry) (Stats, error) {
	var s Stats
	for _, l := range entry.Image.Layers {
		if err := hashBlob(ctx, store, l); err != nil {
			return s, err
		}
		s.Blobs++
		s.Bytes += l.Size
	}
	f := processor.Files{Store: store, Image: entry.Image}
	config, err := f.Config()
	if err != nil {
		return s, err
	}
	if s.Tensors, err = load.CheckTensors(f, config); err != nil {
		return s, err
	}
	_, err = f.Tokenizer()
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
			"create or pull the model again: %w", l.Kind, l.Name, l.Digest, got, runtime.ErrImage)
	}
	return nil
}
