package models

import (
	"context"

	"github.com/ingotml/ingot/mlx"
)

// Seeing is a Model that may take pictures.
type Seeing interface {
	Model
	// Tower makes vectors of pictures; nil where the model came without one.
	Tower() Tower
}

// Tower is the part of a model that sees.
type Tower interface {
	// Encode gives the vectors [rows*cols/merge^2, hidden] that stand for the image tokens of one picture. Its patches,
	// float32 [rows*cols, channels*frames*side*side], come in blocks of merge x merge. It ends early with ctx's error.
	Encode(ctx context.Context, patches *mlx.Array, rows, cols int) (*mlx.Array, error)
}
