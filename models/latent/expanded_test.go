package latent

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
)

// expanded is latent attention as the papers define it, in float64: each token's latent is expanded to a key and a
// value for every head.
type expanded struct {
	config.LatentDecoder
	w map[string][]float64 // by name, without the prefix of the layer
}

const layerName = "model.layers.0.self_attn"

// newExpanded reads the attention with the given name of a checkpoint.
func newExpanded(t *testing.T, name, layer string) *expanded {
	t.Helper()
	config, weights := modeltest.Weights(t, name)
	x := &expanded{LatentDecoder: decoderOf(config), w: map[string][]float64{}}
	mlxtest.Do(t, func(*mlx.Thread) {
		for _, s := range config.Table().Specs {
			part, ok := strings.CutPrefix(s.Name, layer+".")
			if !ok {
				continue
			}
			var shape []int
			for _, n := range s.Shape {
				shape = append(shape, int(n))
			}
			for _, v := range weights.Take(s.Name, shape...).Float32s() {
				x.w[part] = append(x.w[part], float64(v))
			}
		}
	})
	return x
}

// decoderOf returns the configuration that a model type embeds.
func decoderOf(m arch.Model) config.LatentDecoder {
	return reflect.ValueOf(m).Elem().FieldByName("LatentDecoder").Interface().(config.LatentDecoder)
}

// linear applies a layer to a row.
func (x *expanded) linear(name string, row []float64) []float64 {
	w, bias := x.w[name+".weight"], x.w[name+".bias"]
	out := make([]float64, len(w)/len(row))
	for i := range out {
		for j, v := range row {
			out[i] += w[i*len(row)+j] * v
		}
		if bias != nil {
			out[i] += bias[i]
		}
	}
	return out
}

func (x *expanded) norm(name string, row []float64) []float64 {
	squares := 0.0
	for _, v := range row {
		squares += v * v
	}
	out, by := make([]float64, len(row)), 1/math.Sqrt(squares/float64(len(row))+x.Latent.Eps)
	for i, v := range row {
		out[i] = v * by * x.w[name+".weight"][i]
	}
	return out
}

// rotate rotates the channels of a head at a position.
func (x *expanded) rotate(row []float64, position int) []float64 {
	freqs, scale := x.Rope.Frequencies(x.Latent.RopeDim)
	out, half := make([]float64, len(row)), len(row)/2
	for j := range half {
		a, b := j, j+half
		if x.Latent.Interleaved {
			a, b = 2*j, 2*j+1
		}
		sin, cos := math.Sincos(freqs[j] * float64(position))
		out[a], out[b] = scale*(row[a]*cos-row[b]*sin), scale*(row[b]*cos+row[a]*sin)
	}
	return out
}

// attend returns the attention of the last row. It returns the number of elements that an expanded cache has, too.
func (x *expanded) attend(rows [][]float64) (out []float64, elements int) {
	l, last := x.Latent, len(rows)-1
	var q []float64
	if l.QueryRank > 0 {
		q = x.linear("q_b_proj", x.norm("q_a_layernorm", x.linear("q_a_proj", rows[last])))
	} else {
		q = x.linear("q_proj", rows[last])
	}
	keys, values := make([][]float64, len(rows)), make([][]float64, len(rows)) // of all heads
	for i, row := range rows {
		down := x.linear("kv_a_proj_with_mqa", row)
		latent := x.norm("kv_a_layernorm", down[:l.KVRank])
		for j := range latent {
			latent[j] *= cmp.Or(l.KVScale, 1)
		}
		up := x.linear("kv_b_proj", latent)
		rotated := x.rotate(down[l.KVRank:], i)
		for h := range x.Heads {
			head := up[h*(l.NopeDim+l.ValueDim):][:l.NopeDim+l.ValueDim]
			keys[i] = append(append(keys[i], head[:l.NopeDim]...), rotated...)
			values[i] = append(values[i], head[l.NopeDim:]...)
		}
		elements += len(keys[i]) + len(values[i])
	}
	var joined []float64
	for h, width := 0, l.NopeDim+l.RopeDim; h < x.Heads; h++ {
		query := append([]float64{}, q[h*width:][:l.NopeDim]...)
		query = append(query, x.rotate(q[h*width+l.NopeDim:][:l.RopeDim], last)...)
		total, value := 0.0, make([]float64, l.ValueDim)
		for i := range rows {
			score := 0.0
			for j, v := range query {
				score += v * keys[i][h*width+j]
			}
			weight := math.Exp(score * x.AttentionScale())
			total += weight
			for j := range value {
				value[j] += weight * values[i][h*l.ValueDim+j]
			}
		}
		for _, v := range value {
			joined = append(joined, v/total)
		}
	}
	return x.linear("o_proj", joined), elements
}

// Decoding with absorbed matrices over latents equals attention over expanded keys and values, and the cache has one
// latent and one rotated key per token.
func TestExpanded(t *testing.T) {
	for _, name := range []string{
		"deepseek_v3-published", "deepseek_v3-saved", "deepseek_v2-published", "longcat_flash-published",
	} {
		t.Run(name, func(t *testing.T) {
			layer := layerName
			if strings.HasPrefix(name, "longcat") {
				layer += ".1" // the second of a layer
			}
			x := newExpanded(t, name, layer)
			config, weights := modeltest.Weights(t, name)
			c := decoderOf(config)
			const tokens = 9
			r := rand.New(rand.NewPCG(32, 1))
			var rows [][]float64
			mlxtest.Do(t, func(e *mlx.Thread) {
				rope := nn.NewRope(e, weights, c.Rope, c.Latent.RopeDim)
				if c.Latent.Interleaved {
					rope.Interleaved()
				}
				a := NewAttention(weights, layer, 0, &c, rope)
				seq := cache.NewSequence([]cache.Kind{cache.Full})
				defer seq.Free()
				for range tokens {
					row, in := make([]float64, c.Hidden), make([]float32, c.Hidden)
					for i := range row {
						in[i] = float32(r.NormFloat64())
						row[i] = float64(in[i])
					}
					rows = append(rows, row)
					var got []float32
					e.Scope(func() {
						b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: []int32{1}})
						got = a.apply(b, mlx.FromSlice(e, in, 1, c.Hidden)).Float32s()
					})
					want, elements := x.attend(rows)
					wantClose(t, got, want)
					if len(rows) == tokens {
						checkMemory(t, seq, c.Latent, tokens, elements)
					}
				}
			})
		})
	}
}

func wantClose(t *testing.T, got []float32, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-5 {
			t.Fatalf("output %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// checkMemory compares the memory of a snapshot, which has no spare room, with the latents' and the expanded form's.
func checkMemory(t *testing.T, seq *cache.Sequence, l config.Latent, tokens, elements int) {
	t.Helper()
	s := seq.Snapshot(0)
	defer s.Close()
	bytes := int(s.Size())
	if want := 4 * tokens * (l.KVRank + l.RopeDim); bytes != want {
		t.Errorf("%d tokens take %d bytes, want %d", tokens, bytes, want)
	}
	if 3*bytes > 4*elements {
		t.Errorf("%d tokens take %d bytes, and %d expanded", tokens, bytes, 4*elements)
	}
}
