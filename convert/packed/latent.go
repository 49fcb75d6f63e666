package packed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// mlx-lm splits kv_b_proj, a projection of multi-head latent attention, in two, with a dimension for heads: embed_q
// [heads, rank, keys], the transposed rows of keys, and unembed_out [heads, values, rank]. Codes packed along the last
// dimension of embed_q would cross rows of kv_b_proj, so they cannot be kept.
// https://github.com/ml-explore/mlx-lm/blob/v0.32.2/mlx_lm/models/glm4_moe_lite.py (sanitize)
const (
	latentKeys   = ".embed_q.weight"
	latentValues = ".unembed_out.weight"
	latentBoth   = ".kv_b_proj.weight"
)

// joinLatent replaces each pair by kv_b_proj.
func (r *Result) joinLatent() error {
	var joined []Weight
	find := func(name string) (Weight, bool) {
		if i := slices.IndexFunc(r.Weights, func(w Weight) bool { return w.Name == name }); i >= 0 {
			return r.Weights[i], true
		}
		if i := slices.IndexFunc(r.Plain, func(t safetensors.Source) bool { return t.Name == name }); i >= 0 {
			t := r.Plain[i]
			return Weight{Name: name, Shape: t.Shape, DType: t.DType, Parts: []safetensors.Source{t}, Read: PlainElements(t)},
				true
		}
		return Weight{}, false
	}
	for _, base := range r.latent() {
		keys, _ := find(base + latentKeys)
		values, ok := find(base + latentValues)
		if !ok {
			return wrong(keys.Parts[0], "its counterpart %s is missing; download the checkpoint again", base+latentValues)
		}
		w, err := joinHeads(base+latentBoth, keys, values)
		if err != nil {
			return err
		}
		joined = append(joined, w)
	}
	if len(joined) == 0 {
		return nil
	}
	isPart := func(name string) bool {
		return strings.HasSuffix(name, latentKeys) || strings.HasSuffix(name, latentValues)
	}
	r.Weights = append(slices.DeleteFunc(r.Weights, func(w Weight) bool { return isPart(w.Name) }), joined...)
	r.Plain = slices.DeleteFunc(slices.Clone(r.Plain), func(t safetensors.Source) bool { return isPart(t.Name) })
	r.Recognized = append(r.Recognized, Recognized{
		Kind: "layout", What: "latent attention as mlx-lm has it, kv_b_proj in two", Tensors: len(joined),
		From: []string{joined[0].Parts[0].Name, strings.Replace(joined[0].Parts[0].Name, latentKeys, latentValues, 1)},
	})
	return nil
}

// latent lists the layers with an embed_q.
func (r *Result) latent() []string {
	var out []string
	add := func(name string) {
		if base, ok := strings.CutSuffix(name, latentKeys); ok {
			out = append(out, base)
		}
	}
	for _, w := range r.Weights {
		add(w.Name)
	}
	for _, t := range r.Plain {
		add(t.Name)
	}
	slices.Sort(out)
	return out
}

func joinHeads(name string, keys, values Weight) (Weight, error) {
	k, v := keys.Shape, values.Shape
	if len(k) != 3 || len(v) != 3 || k[0] != v[0] || k[1] != v[2] {
		return Weight{}, wrong(values.Parts[0], "its shape %v does not match that of %s, %v: "+
			"want [heads, values, rank] and [heads, rank, keys]", v, keys.Name, k)
	}
	w := Weight{
		Name: name, Shape: []int64{k[0] * (k[2] + v[1]), k[1]}, DType: keys.DType,
		Parts: slices.Concat(keys.Parts, values.Parts), Plain: true,
		Format: "embed_q and unembed_out", Why: "its keys are transposed there",
		Read: heads{keys: keys.Read, values: values.Read, rank: k[1], nk: k[2], nv: v[1]},
	}
	if keys.Format != "" {
		w.Format = fmt.Sprintf("%s (%s, %s)", w.Format, keys.Format, values.Format)
	}
	return w, nil
}

// heads reads kv_b_proj: for each head, its rows of keys and then its rows of values.
type heads struct {
	keys, values Elements
	rank         int64
	nk, nv       int64 // rows per head
}

func (e heads) Floats(dst []byte, begin, count int64) error {
	var bank []byte // a head's keys, transposed
	loaded := int64(-1)
	for at := int64(0); at < count; {
		row, col := (begin+at)/e.rank, (begin+at)%e.rank
		head, j := row/(e.nk+e.nv), row%(e.nk+e.nv)
		if j >= e.nk {
			n := min((e.nk+e.nv-j)*e.rank-col, count-at)
			if err := e.values.Floats(dst[4*at:4*(at+n)], (head*e.nv+j-e.nk)*e.rank+col, n); err != nil {
				return err
			}
			at += n
			continue
		}
		if loaded != head {
			bank, loaded = make([]byte, 4*e.rank*e.nk), head
			if err := e.keys.Floats(bank, head*e.rank*e.nk, e.rank*e.nk); err != nil {
				return err
			}
		}
		n := min(e.rank-col, count-at)
		for i := range n {
			copy(dst[4*(at+i):4*(at+i)+4], bank[4*((col+i)*e.nk+j):])
		}
		at += n
	}
	return nil
}

func (heads) Codes(quantize.Blocks, int64, int64) error {
	return fmt.Errorf("%w: its codes cannot be kept", ErrSource)
}
