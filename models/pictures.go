package models

import (
	"context"

	"github.com/ingotml/ingot/mlx"
)

// Seeing is a Model that may accept images.
type Seeing interface {
	Model
	// Tower returns the vision tower, or nil if the checkpoint has none.
	Tower() Tower
}

// Tower is the vision tower of a model.
type Tower interface {
	// Encode returns the vectors [rows*cols/merge^2, hidden] of the image tokens of one image. Its patches, float32
	// [rows*cols, channels*frames*side*side], are ordered in blocks of merge x merge. If ctx ends, Encode returns its
	// error.
	Encode(ctx context.Context, patches *mlx.Array, rows, cols int) (*mlx.Array, error)
}
