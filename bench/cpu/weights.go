package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
)

// Package runtime does not expose its model or a forward pass of several streams. So ops rows and profile build the
// model here, over the same mapped files. The image is trusted: batch.Open has checked it.

const maxConfig = 1 << 20

// loadModel builds the model from the image's blobs.
func (b *bench) loadModel(ctx context.Context, store *store.Store, entry *store.Entry) error {
	layer, ok := entry.Image.Find(manifest.KindFile, "config.json")
	if !ok {
		return fmt.Errorf("%s has no config.json", entry.Name)
	}
	text, err := store.ReadBlob(layer.Digest, maxConfig)
	if err != nil {
		return err
	}
	config, err := arch.Detect(text)
	if err != nil {
		return err
	}
	b.vocab = int(config.Facts().Vocab)
	tied := !slices.ContainsFunc(entry.Image.Layers, isHead)
	return b.thread.Do(ctx, func() (err error) {
		tensors := map[string]*nn.Tensor{}
		defer func() {
			if err != nil {
				nn.NewWeights(0, tensors).Free()
				b.weights = nil
			}
		}()
		for _, l := range entry.Image.Layers {
			if l.Kind != manifest.KindTensor {
				continue
			}
			tensor, bytes, err := loadTensor(b.thread, store, l)
			if err != nil {
				return fmt.Errorf("tensor %s: %w", l.Name, err)
			}
			tensors[l.Name] = tensor
			b.bytes += read(config, l.Name, bytes, tied)
		}
		b.weights = nn.NewWeights(mlx.BFloat16, tensors)
		b.model, err = models.Build(b.thread, config, b.weights)
		return err
	})
}

// read returns how many of a tensor's bytes one token reads: one row of an embedding, all of an embedding that is also
// the head, and the selected experts.
func read(data arch.Model, name string, bytes int64, tied bool) int64 {
	switch {
	case strings.Contains(name, "embed_tokens_per_layer"), isEmbedding(name) && !tied:
		return bytes / data.Facts().Vocab
	case strings.Contains(name, ".experts."):
		var e config.Experts
		switch c := data.(type) {
		case *types.Qwen3Moe:
			e = c.Experts
		case *types.GptOss:
			e = c.Mixture.Experts
		case *types.DeepseekV3:
			e = c.Mixture.Experts
		case *types.NemotronH:
			e = c.Mixture.Experts
		}
		if e.Count > 0 {
			return bytes * int64(e.PerToken) / int64(e.Count)
		}
	}
	return bytes
}

func isEmbedding(name string) bool {
	return strings.Contains(name, "embed_tokens") || strings.HasSuffix(name, ".embeddings.weight")
}

func isHead(l manifest.Layer) bool {
	return l.Kind == manifest.KindTensor && l.Name == "lm_head.weight"
}

var dtypes = map[safetensors.DType]mlx.DType{
	"U8": mlx.Uint8, "U32": mlx.Uint32, "BF16": mlx.BFloat16, "F16": mlx.Float16, "F32": mlx.Float32,
}

var modes = map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8, "nvfp4": mlx.NVFP4}

// loadTensor maps a tensor's blob and also returns its size.
func loadTensor(t *mlx.Thread, store *store.Store, l manifest.Layer) (*nn.Tensor, int64, error) {
	f, err := store.OpenBlob(l.Digest)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	b, err := blob.Read(f, l.Size, l.Name)
	if err != nil {
		return nil, 0, err
	}
	kind, err := b.Check()
	if err != nil {
		return nil, 0, err
	}
	header := b.Header
	region := mlx.OpenRegion(t, store.BlobPath(l.Digest), header.DataOffset, header.Size-header.DataOffset)
	defer region.Close()
	arrays := map[string]*mlx.Array{}
	for suffix, part := range b.Arrays {
		d, ok := dtypes[part.DType]
		if !ok {
			return nil, 0, fmt.Errorf("type %s is not one of this benchmark", part.DType)
		}
		shape := make([]int, len(part.Shape))
		for i, n := range part.Shape {
			shape[i] = int(n)
		}
		arrays[suffix] = mlx.Keep(region.Array(part.Begin, d, shape...))
	}
	tensor := &nn.Tensor{Array: arrays[""]}
	if kind != 0 {
		tensor.Packed = &nn.Packed{Scales: arrays[blob.ScaleSuffix], Biases: arrays[blob.BiasSuffix],
			Mode: modes[kind.Mode()], Bits: kind.Bits(), Group: kind.Group(), Global: b.Global}
	}
	return tensor, header.Size - header.DataOffset, nil
}
