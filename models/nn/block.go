package nn

import "github.com/ingotml/ingot/mlx"

// Mixer is the part of a layer in which rows read others of their sequence: attention or a recurrent layer.
type Mixer interface {
	// AddApply returns x+y [T, hidden] and the output for the normalized sum, both for the rows that [Batch.Queried]
	// selects. If y is nil the sum is x.
	AddApply(b *Batch, n *Norm, x, y *mlx.Array) (sum, out *mlx.Array)
}

// Network is the part of a layer that treats each row by itself: an MLP or experts.
type Network interface {
	// AddApply returns x+y [T, hidden] and the output for the normalized sum. If y is nil the sum is x.
	AddApply(n *Norm, x, y *mlx.Array) (sum, out *mlx.Array)
}

// Block is a layer of a decoder: a mixer and a network, each of which adds its output to the residual stream. Norms are
// optional.
type Block struct {
	MixerNorm *Norm
	Mixer     Mixer // nil if the layer is only a network
	MixerPost *Norm // of the mixer's output

	NetworkNorm *Norm
	Network     Network // nil if the layer is only a mixer
	NetworkPost *Norm   // of the network's output

	Scale    float64 // of both outputs; 0 means 1
	Parallel bool    // the network reads the mixer's input instead of the sum
}

// Apply returns two arrays [T, hidden] whose sum is the layer's output, for the rows that [Batch.Queried] selects. The
// input is x+y; y may be nil.
func (l *Block) Apply(b *Batch, x, y *mlx.Array) (sum, out *mlx.Array) {
	if l.Mixer == nil {
		if x = b.Queried(x); y != nil {
			y = b.Queried(y)
		}
		sum, out = l.Network.AddApply(l.NetworkNorm, x, y)
		return sum, l.scaled(l.NetworkPost.Apply(out))
	}
	sum, mixed := l.Mixer.AddApply(b, l.MixerNorm, x, y)
	mixed = l.scaled(l.MixerPost.Apply(mixed))
	switch {
	case l.Network == nil:
		return sum, mixed
	case l.Parallel:
		_, out = l.Network.AddApply(l.NetworkNorm, sum, nil)
		return sum, mlx.Add(mixed, l.scaled(l.NetworkPost.Apply(out)))
	}
	sum, out = l.Network.AddApply(l.NetworkNorm, sum, mixed)
	return sum, l.scaled(l.NetworkPost.Apply(out))
}

func (l *Block) scaled(x *mlx.Array) *mlx.Array {
	if l.Scale == 0 {
		return x
	}
	return mlx.MultiplyScalar(x, l.Scale)
}
