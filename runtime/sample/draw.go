package sample

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// row is one row of logits and the request that it belongs to.
type row struct {
	*Request
	at       int    // index among the request's rows
	index    int    // index among the rows of the logits
	position uint64 // of the token that follows it, see sampler.position
	mask     []uint32
}

func newRow(a *Request, at, number int) row {
	r := row{Request: a, at: at, index: number, position: a.Sampler.position + uint64(at)}
	if a.Masks != nil {
		r.mask = a.Masks[at]
	}
	return r
}

// verifies reports whether the row verifies a draft that was drawn from a distribution.
func (r row) verifies() bool { return r.at < min(len(r.Q), len(r.Drafts)) && r.Q[r.at] != nil }

// samplingMode identifies the rows that are processed by the same operations. Parameters that differ between them are
// passed as columns.
type samplingMode struct {
	edited, masked bool
	draws          bool // false: greedy
	k              int  // top_k; 0: the whole vocabulary
	typical        bool // uses typical_p
	nucleus, floor bool // uses top_p; uses min_p
	verifies       bool
}

func (r row) mode(vocab int) samplingMode {
	s := &r.Sampler.sampling
	out := samplingMode{edited: editsLogits(s), masked: r.mask != nil}
	if s.Temperature <= 0 {
		return out // greedy: a draft is accepted if it is the most likely token
	}
	out.draws, out.verifies = true, r.verifies()
	if s.TopK > 0 && s.TopK < vocab {
		out.k = s.TopK
	}
	out.typical = s.TypicalP > 0 && s.TypicalP < 1
	out.nucleus = s.TopP > 0 && s.TopP < 1
	out.floor = s.MinP > 0 && s.MinP <= 1
	return out
}

// chunkRows returns how many rows are processed together. The temporary arrays of all rows of many requests with drafts
// could take more memory than the model's step.
func (s samplingMode) chunkRows(vocab int) int {
	const most = 1 << 23 // elements
	if s.edited || s.masked || s.verifies || s.draws && s.k == 0 {
		return max(1, most/vocab)
	}
	return math.MaxInt
}

// choose samples the tokens that follow rows of one mode, int32 [len(rows)], from their logits [len(rows), vocab].
func (s samplingMode) choose(logits *mlx.Array, rows []row) *mlx.Array {
	logits = s.adjust(logits, rows)
	if !s.draws {
		return mlx.AsType(mlx.ArgMax(logits, -1, false), mlx.Int32)
	}
	p, ids := s.candidates(logits, rows)
	if s.nucleus && s.k == 0 && !s.typical && p.Dim(1) > 2*nucleusCandidates && !p.Thread().Info().GPU {
		return s.chooseNucleus(p, rows)
	}
	return s.from(p, ids, rows)
}

// candidates returns the candidates' probabilities [rows, n]. ids are their tokens in descending order of probability,
// or nil for the whole vocabulary.
func (s samplingMode) candidates(logits *mlx.Array, rows []row) (p, ids *mlx.Array) {
	if s.k > 0 {
		best := mlx.Largest(logits, s.k)
		logits, ids = best[0], mlx.AsType(best[1], mlx.Int32)
	}
	inverseTemperature := column(logits.Thread(), rows, func(r row) float32 {
		return float32(min(1/r.Sampler.sampling.Temperature, maxInverseTemperature))
	})
	return mlx.Softmax(mlx.Multiply(mlx.AsType(logits, mlx.Float32), inverseTemperature), true, -1), ids
}

// nucleusCandidates is the number of most likely tokens that contain the nucleus, unless the distribution is nearly
// flat.
const nucleusCandidates = 2048

// chooseNucleus looks for the nucleus among the most likely tokens of all rows at once. It sorts the whole vocabulary
// only for rows with a larger nucleus: sorting 262,144 tokens takes a CPU 40 ms. It waits for the logits.
func (s samplingMode) chooseNucleus(p *mlx.Array, rows []row) *mlx.Array {
	t := p.Thread()
	best := mlx.Largest(p, nucleusCandidates)
	sums := last(mlx.CumSum(best[0], -1, false, true))
	mlx.Eval(sums, best[0], best[1], p)
	ids := mlx.AsType(best[1], mlx.Int32)
	var near, far []int32
	for i, sum := range mlx.ToSlice[float32](sums) {
		if sum >= float32(rows[i].Sampler.sampling.TopP) {
			near = append(near, int32(i))
		} else {
			far = append(far, int32(i))
		}
	}
	switch {
	case len(far) == 0:
		return s.from(best[0], ids, rows)
	case len(near) == 0:
		return s.from(p, nil, rows)
	}
	part := func(at []int32, p, ids *mlx.Array) *mlx.Array {
		own := make([]row, len(at))
		for i, j := range at {
			own[i] = rows[j]
		}
		places := mlx.FromSlice(t, at)
		if ids != nil {
			ids = mlx.Take(ids, places, 0)
		}
		return s.from(mlx.Take(p, places, 0), ids, own)
	}
	return inOrder(slices.Concat(near, far), part(near, best[0], ids), part(far, p, nil))
}

// from samples from candidates.
func (s samplingMode) from(p, ids *mlx.Array, rows []row) *mlx.Array {
	p = s.trim(p, ids, rows)
	uniforms := column(p.Thread(), rows, func(r row) float32 { return r.Sampler.uniform(drawToken, r.position) })
	if s.verifies {
		return verifyDrafts(p, ids, rows, uniforms)
	}
	return mlx.Reshape(tokensAt(draw(p, uniforms), ids), len(rows))
}

// trim sets the probability of candidates outside typical_p, top_p and min_p to 0.
func (s samplingMode) trim(p, ids *mlx.Array, rows []row) *mlx.Array {
	t := p.Thread()
	if s.typical {
		p = typical(p, column(t, rows, func(r row) float32 { return float32(r.Sampler.sampling.TypicalP) }))
	}
	if s.nucleus {
		p = nucleus(p, column(t, rows, func(r row) float32 { return float32(r.Sampler.sampling.TopP) }), ids != nil)
	}
	if s.floor {
		share := column(t, rows, func(r row) float32 { return float32(r.Sampler.sampling.MinP) })
		least := mlx.Multiply(mlx.Max(p, true, -1), share)
		p = keepWhere(p, mlx.GreaterEqual(p, least))
	}
	return p
}

// maxInverseTemperature bounds 1/temperature. At lower temperatures sampling is greedy in effect, and products with
// logits would not be finite.
const maxInverseTemperature = 1e6

// column makes an array [len(rows), 1] with one value for each row. dims overrides its shape.
func column[T mlx.Element](t *mlx.Thread, rows []row, of func(row) T, dims ...int) *mlx.Array {
	list := make([]T, len(rows))
	for i, r := range rows {
		list[i] = of(r)
	}
	if dims == nil {
		dims = []int{len(rows), 1}
	}
	return mlx.FromSlice(t, list, dims...)
}

// keepWhere sets p to 0 where keep is false.
func keepWhere(p, keep *mlx.Array) *mlx.Array {
	return mlx.Where(keep, p, mlx.Scalar(p.Thread(), float32(0)))
}

// nucleus keeps the most likely candidates of p [rows, n]: those whose more likely candidates sum to less than limit
// [rows, 1]. If the candidates are not ordered, ties with the last one are kept too.
func nucleus(p, limit *mlx.Array, ordered bool) *mlx.Array {
	if ordered {
		return keepWhere(p, mlx.Less(mlx.CumSum(p, -1, false, false), limit))
	}
	up := mlx.Sort(p, -1)
	above := mlx.CumSum(up, -1, true, false)
	least := mlx.Min(mlx.Where(mlx.Less(above, limit), up, mlx.Scalar(p.Thread(), float32(math.Inf(1)))), true, -1)
	return keepWhere(p, mlx.GreaterEqual(p, least))
}

// typical keeps the candidates of p [rows, n] whose information is nearest to the entropy of the row (Meister et al.,
// "Locally Typical Sampling"): those whose nearer candidates sum to less than limit [rows, 1], and ties with the last
// one. It normalizes what remains.
func typical(p, limit *mlx.Array) *mlx.Array {
	t := p.Thread()
	infinity := mlx.Scalar(t, float32(math.Inf(1)))
	possible := mlx.Greater(p, mlx.Scalar(t, float32(0)))
	information := mlx.Negative(mlx.Log(mlx.Where(possible, p, mlx.Scalar(t, float32(1)))))
	entropy := mlx.Sum(mlx.Multiply(p, information), true, -1)
	distance := mlx.Where(possible, mlx.Abs(mlx.Subtract(information, entropy)), infinity)
	order := mlx.ArgSort(distance, -1)
	nearer := mlx.CumSum(mlx.TakeAlongAxis(p, order, -1), -1, false, false)
	up := mlx.TakeAlongAxis(distance, order, -1)
	most := mlx.Max(mlx.Where(mlx.Less(nearer, limit), up, mlx.Negative(infinity)), true, -1)
	p = keepWhere(p, mlx.LessEqual(distance, most))
	return mlx.Divide(p, mlx.Sum(p, true, -1))
}

// A draw from more than maxFlatDraw candidates first selects a block of drawBlock candidates.
const (
	maxFlatDraw = 2048
	drawBlock   = 256
)

// draw draws an index of each row of p [rows, n] with probability proportional to p: the first index whose cumulative
// sum exceeds the row's total times its variate in uniforms [rows, 1]. It returns int32 [rows, 1].
func draw(p, uniforms *mlx.Array) *mlx.Array {
	rows, n := p.Dim(0), p.Dim(1)
	if n <= maxFlatDraw {
		sums := mlx.CumSum(p, -1, false, true)
		return count(sums, mlx.Multiply(last(sums), uniforms))
	}
	if rest := n % drawBlock; rest != 0 {
		p = mlx.Pad(p, []int{0, 0}, []int{0, drawBlock - rest}, 0)
	}
	blocks := p.Dim(1) / drawBlock
	each := mlx.Sum(mlx.Reshape(p, rows, blocks, drawBlock), false, -1)
	sums := mlx.CumSum(each, -1, false, true)
	target := mlx.Multiply(last(sums), uniforms)
	at := count(sums, target)
	before := mlx.TakeAlongAxis(mlx.Subtract(sums, each), at, -1)
	first := make([]int32, rows)
	for i := range first {
		first[i] = int32(i * blocks)
	}
	inside := mlx.Take(mlx.Reshape(p, rows*blocks, drawBlock),
		mlx.Add(mlx.Reshape(at, rows), mlx.FromSlice(p.Thread(), first)), 0)
	sums = mlx.CumSum(inside, -1, false, true)
	// A block's sum is computed twice, in different order, so its last bits differ: clamp the target to the block.
	target = mlx.Minimum(mlx.MaximumScalar(mlx.Subtract(target, before), 0), mlx.MultiplyScalar(last(sums), 1-1.0/(1<<20)))
	return mlx.Add(mlx.MultiplyScalar(at, drawBlock), count(sums, target))
}

// count returns how many sums of a row do not exceed its target, which is the index of the first sum that exceeds it.
func count(sums, target *mlx.Array) *mlx.Array {
	return mlx.Sum(mlx.LessEqual(sums, target), true, -1)
}

func last(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, -1, mlx.Range(x.Dim(-1)-1, x.Dim(-1))) }

// tokensAt maps indices of candidates to tokens.
func tokensAt(at, ids *mlx.Array) *mlx.Array {
	if ids == nil {
		return at
	}
	return mlx.TakeAlongAxis(ids, at, -1)
}

// verifyDrafts accepts each row's draft with probability min(1, p/q), and otherwise draws from max(p-q, 0). p are the
// candidates' probabilities [rows, n], which need not be normalized.
func verifyDrafts(p, ids *mlx.Array, rows []row, uniforms *mlx.Array) *mlx.Array {
	t := p.Thread()
	p = mlx.Divide(p, mlx.Sum(p, true, -1))
	drafts := column(t, rows, func(r row) int32 { return r.Drafts[r.at] })
	q := draftDistributions(rows)
	qDraft := mlx.TakeAlongAxis(q, drafts, -1)
	var pDraft *mlx.Array
	if ids == nil {
		pDraft = mlx.TakeAlongAxis(p, drafts, -1)
	} else {
		pDraft = mlx.Sum(keepWhere(p, mlx.Equal(ids, drafts)), true, -1)
		q = mlx.TakeAlongAxis(q, ids, -1)
	}
	accept := column(t, rows, func(r row) float32 { return r.Sampler.uniform(drawAccept, r.position) })
	keep := mlx.Less(mlx.Multiply(accept, qDraft), pDraft)
	rest := mlx.MaximumScalar(mlx.Subtract(p, q), 0)
	// If rounding leaves nothing of the difference, p equals q: draw from p.
	some := mlx.Greater(mlx.Sum(rest, true, -1), mlx.Scalar(t, float32(0)))
	other := tokensAt(draw(mlx.Where(some, rest, p), uniforms), ids)
	return mlx.Reshape(mlx.Where(keep, drafts, other), len(rows))
}

// draftDistributions gathers the distributions of the rows' drafts, [len(rows), vocab].
func draftDistributions(rows []row) *mlx.Array {
	q := make([]*mlx.Array, len(rows))
	for i, r := range rows {
		q[i] = r.Q[r.at]
	}
	return mlx.Concatenate(0, q...)
}
