package nn_test

import (
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// times multiplies the normalized sum. It is a network, and with mixes a mixer.
type times float64

func (f times) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, normed := n.AddApply(x, y)
	return sum, mlx.MultiplyScalar(normed, float64(f))
}

type mixes struct{ times }

func (f mixes) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, out = f.times.AddApply(n, x, y)
	return b.Queried(sum), b.Queried(out)
}

// A block's options place norms and scales as the formulas of the model families do.
func TestBlock(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, map[string][]int{"a.weight": {8}, "b.weight": {8}, "b.bias": {8}, "c.weight": {8}, "d.weight": {8}})
		defer w.Free()
		a, b := nn.NewRMSNorm(w, "a", 8, 1e-6).PlusOne(), nn.NewLayerNorm(w, "b", 8, 1e-5, true)
		c, d := nn.NewRMSNorm(w, "c", 8, 1e-6), nn.NewRMSNorm(w, "d", 8, 1e-6)
		layerNorm := func(x *mlx.Array) *mlx.Array { return mlx.LayerNorm(x, v["b.weight"], v["b.bias"], 1e-5) }
		plusOne := func(x *mlx.Array) *mlx.Array { return mlx.RMSNormPlusOne(x, v["a.weight"], 1e-6) }
		mul := mlx.MultiplyScalar
		x := mlx.RandomNormal(mlx.RandomKey(e, 90), mlx.Float32, 3, 8)
		y := mlx.RandomNormal(mlx.RandomKey(e, 91), mlx.Float32, 3, 8)
		for _, test := range []struct {
			name  string
			block nn.Block
			want  func(h *mlx.Array) *mlx.Array // of the residual stream
		}{
			{"norms before", nn.Block{MixerNorm: a, Mixer: mixes{2}, NetworkNorm: b, Network: times(3)},
				func(h *mlx.Array) *mlx.Array {
					h = mlx.Add(h, mul(plusOne(h), 2))
					return mlx.Add(h, mul(layerNorm(h), 3))
				}},
			{"norms around", nn.Block{
				MixerNorm: a, Mixer: mixes{2}, MixerPost: c, NetworkNorm: b, Network: times(3), NetworkPost: d,
			}, func(h *mlx.Array) *mlx.Array {
				h = mlx.Add(h, c.Apply(mul(plusOne(h), 2)))
				return mlx.Add(h, d.Apply(mul(layerNorm(h), 3)))
			}},
			{"norms after", nn.Block{Mixer: mixes{2}, MixerPost: c, Network: times(3), NetworkPost: d},
				func(h *mlx.Array) *mlx.Array {
					h = mlx.Add(h, c.Apply(mul(h, 2)))
					return mlx.Add(h, d.Apply(mul(h, 3)))
				}},
			{"parallel", nn.Block{MixerNorm: a, Mixer: mixes{2}, NetworkNorm: b, Network: times(3), Parallel: true},
				func(h *mlx.Array) *mlx.Array { return mlx.Add(h, mlx.Add(mul(plusOne(h), 2), mul(layerNorm(h), 3))) }},
			{"scaled", nn.Block{MixerNorm: a, Mixer: mixes{2}, NetworkNorm: b, Network: times(3), Scale: 0.5},
				func(h *mlx.Array) *mlx.Array {
					h = mlx.Add(h, plusOne(h))
					return mlx.Add(h, mul(layerNorm(h), 1.5))
				}},
			{"scaled and parallel", nn.Block{MixerNorm: a, Mixer: mixes{2}, Network: times(3), Scale: 0.5, Parallel: true},
				func(h *mlx.Array) *mlx.Array { return mlx.Add(h, mlx.Add(plusOne(h), mul(h, 1.5))) }},
			{"only a mixer", nn.Block{MixerNorm: a, Mixer: mixes{2}},
				func(h *mlx.Array) *mlx.Array { return mlx.Add(h, mul(plusOne(h), 2)) }},
		} {
			sum, out := test.block.Apply(&nn.Batch{}, x, y)
			wantNearly(t, test.name, mlx.Add(sum, out), test.want(mlx.Add(x, y)))
			sum, out = test.block.Apply(&nn.Batch{}, x, nil)
			wantNearly(t, test.name+", first", mlx.Add(sum, out), test.want(x))
		}
	})
}

// A LayerNorm, or no norm, before layers and an MLP without a gate equal the compositions.
func TestNormsBeforeLayers(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, map[string][]int{"n.weight": {8}, "up.weight": {16, 8}, "up.bias": {16}, "down.weight": {8, 16}})
		defer w.Free()
		up, down := nn.NewLinear(w, "up", 16, 8, true), nn.NewLinear(w, "down", 8, 16, false)
		x := mlx.RandomNormal(mlx.RandomKey(e, 90), mlx.Float32, 3, 8)
		y := mlx.RandomNormal(mlx.RandomKey(e, 91), mlx.Float32, 3, 8)
		layerNorm := nn.NewLayerNorm(w, "n", 8, 1e-5, false)
		if err := w.Err(); err != nil {
			t.Error(err)
			return
		}
		for name, norm := range map[string]*nn.Norm{"no norm": nil, "layer norm": layerNorm} {
			in := mlx.Add(x, y)
			if norm != nil {
				in = mlx.LayerNorm(in, v["n.weight"], nil, 1e-5)
			}
			want := mlx.Add(mlx.MatMul(in, mlx.Transpose(v["up.weight"])), v["up.bias"])
			sum, normed, got := nn.NormedLinearsKept(norm, x, y, up)
			wantNearly(t, name+": sum", sum, mlx.Add(x, y))
			wantNearly(t, name+": normalized", normed, in)
			wantNearly(t, name+": layer", got[0], want)
			for _, a := range []struct {
				activation mlx.Activation
				of         func(*mlx.Array) *mlx.Array
			}{
				{mlx.GELUActivation, mlx.GELU}, {mlx.GELUTanhActivation, mlx.GELUTanh}, {mlx.SiLUActivation, mlx.SiLU},
				{mlx.SigmoidActivation, mlx.Sigmoid},
			} {
				mlp := &nn.MLP{Up: up, Down: down, Activation: a.activation}
				_, got := mlp.AddApply(norm, x, y)
				wantNearly(t, name+": mlp", got, mlx.MatMul(a.of(want), mlx.Transpose(v["down.weight"])))
			}
		}
	})
}

// Attention equals the composition of its parts for every place of norms and rope.
func TestAttentionOptions(t *testing.T) {
	const rows, heads, kvHeads, dim, hidden = 5, 4, 2, 8, 16
	shapes := map[string][]int{
		"a.q_proj.weight": {heads * dim, hidden}, "a.k_proj.weight": {kvHeads * dim, hidden},
		"a.v_proj.weight": {kvHeads * dim, hidden}, "a.o_proj.weight": {hidden, heads * dim},
		"a.q_proj.bias": {heads * dim}, "a.k_proj.bias": {kvHeads * dim}, "a.v_proj.bias": {kvHeads * dim},
		"head.weight": {dim}, "q.weight": {heads * dim}, "k.weight": {kvHeads * dim},
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, shapes)
		defer w.Free()
		c := config.Common{Hidden: hidden, Heads: heads, KVHeads: kvHeads, HeadDim: dim, AttentionBias: true}
		rope := nn.NewRope(e, w, config.Rope{Type: config.RopeDefault, Theta: 100}, dim)
		head := nn.NewRMSNorm(w, "head", dim, 1e-6)
		q, k := nn.NewRMSNorm(w, "q", heads*dim, 1e-6), nn.NewRMSNorm(w, "k", kvHeads*dim, 1e-6)
		perHead := func(x *mlx.Array) *mlx.Array { return mlx.RMSNorm(x, v["head.weight"], 1e-6) }
		split := func(x *mlx.Array) *mlx.Array { return mlx.Reshape(x, rows, -1, dim) }
		type two func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array)
		for _, test := range []struct {
			name    string
			options nn.AttentionOptions
			want    two // from projections [rows, heads*dim]
		}{
			{"no positions", nn.AttentionOptions{}, func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
				return split(q), split(k)
			}},
			{"norms without positions", nn.AttentionOptions{QNorm: head, KNorm: head},
				func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
					return perHead(split(q)), perHead(split(k))
				}},
			{"rope", nn.AttentionOptions{Rope: rope, Window: 3}, func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
				return rope.Apply(b, split(q), split(k))
			}},
			{"norms first", nn.AttentionOptions{Rope: rope, QNorm: head, KNorm: head},
				func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
					return rope.Apply(b, perHead(split(q)), perHead(split(k)))
				}},
			{"norms last", nn.AttentionOptions{Rope: rope, QNorm: head, KNorm: head, NormsLast: true, SoftCap: 5},
				func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
					q, k = rope.Apply(b, split(q), split(k))
					return perHead(q), perHead(k)
				}},
			{"whole norms", nn.AttentionOptions{Rope: rope, QNorm: q, KNorm: k, WholeNorms: true, Scale: 0.5},
				func(b *nn.Batch, q, k *mlx.Array) (*mlx.Array, *mlx.Array) {
					return rope.Apply(b, split(mlx.RMSNorm(q, v["q.weight"], 1e-6)), split(mlx.RMSNorm(k, v["k.weight"], 1e-6)))
				}},
		} {
			attention := nn.NewAttention(w, "a", 0, c, test.options)
			if err := w.Err(); err != nil {
				t.Error(err)
				return
			}
			batch := func() (*nn.Batch, *cache.Sequence) {
				seq := cache.NewSequence([]cache.Kind{cache.Rotating(test.options.Window)})
				return nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, rows), All: true}), seq
			}
			x := mlx.RandomNormal(mlx.RandomKey(e, 99), mlx.Float32, rows, hidden)
			b, seq := batch()
			_, got := attention.AddApply(b, nil, x, nil)
			part := func(name string) *mlx.Array {
				return mlx.Add(mlx.MatMul(x, mlx.Transpose(v["a."+name+".weight"])), v["a."+name+".bias"])
			}
			of, own := batch()
			q, k := test.want(of, part("q_proj"), part("k_proj"))
			o := nn.AttendOptions{Scale: test.options.Scale, SoftCap: test.options.SoftCap, Window: test.options.Window}
			if o.Scale == 0 {
				o.Scale = 0.35355339
			}
			y := nn.Attend(of, 0, q, k, split(part("v_proj")), o)
			wantNearly(t, test.name, got, mlx.MatMul(mlx.Reshape(y, rows, heads*dim), mlx.Transpose(v["a.o_proj.weight"])))
			seq.Free()
			own.Free()
		}
	})
}

// A decoder without blocks shows its ends: the scales of embeddings and logits, the norm, the cap and the head.
func TestDecoderEnds(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, map[string][]int{
			"model.embed_tokens.weight": {10, 8}, "lm_head.weight": {10, 8}, "lm_head.bias": {10}, "norm.weight": {8},
		})
		defer w.Free()
		norm := nn.NewRMSNorm(w, "norm", 8, 1e-6)
		ids := []int32{3, 1, 4}
		table := v["model.embed_tokens.weight"]
		rows := mlx.Take(table, mlx.FromSlice(e, ids), 0)
		times := func(x, weight *mlx.Array) *mlx.Array { return mlx.MatMul(x, mlx.Transpose(weight)) }
		c := config.Common{Prefix: "model.", Vocab: 10, Hidden: 8}
		states := []config.LayerState{{}, {PerToken: 4}, {PerToken: 4, Window: 7}, {Fixed: 9}}
		for _, test := range []struct {
			name    string
			tied    bool
			options nn.DecoderOptions
			want    *mlx.Array
		}{
			{"tied", true, nn.DecoderOptions{Norm: norm, EmbeddingScale: 2, LogitCap: 3},
				mlx.Softcap(times(mlx.RMSNorm(mlx.MultiplyScalar(rows, 2), v["norm.weight"], 1e-6), table), 3)},
			{"head", false, nn.DecoderOptions{LogitScale: 0.5, HeadBias: true},
				mlx.MultiplyScalar(mlx.Add(times(rows, v["lm_head.weight"]), v["lm_head.bias"]), 0.5)},
		} {
			c.TieEmbeddings = test.tied
			d := nn.NewDecoder(w, c, states, test.options)
			seq := cache.NewSequence(nil)
			got := d.Head(d.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: ids, All: true})))
			wantNearly(t, test.name, got, test.want)
			kinds := d.Layers()
			if len(kinds) != 4 || kinds[0] != cache.None || kinds[1] != cache.Full || kinds[2] != cache.Rotating(7) ||
				kinds[3] != cache.Recurrent {
				t.Errorf("%s: layers %v", test.name, kinds)
			}
		}
	})
}
