package speed

import (
	"cmp"
	"slices"
	"time"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	_ "github.com/ingotml/ingot/models/all" // registers every model type
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/sample"
)

// rehearsal is a model over made-up weights.
type rehearsal struct {
	thread  *mlx.Thread
	weights *nn.Weights
	model   models.Model
	kept    []cache.Kind
	vocab   int

	decoder *nn.Decoder // nil: the model runs whole
	blocks  []nn.Block  // of decoder
	kinds   []kind
	last    int   // the kind of the last layer
	active  int64 // bytes of weights that a token reads in all layers

	ran      map[int]bool // layers that were chosen
	rowBytes int64        // most that a row of a prompt took beside the state, in any of the layers that ran
}

func newRehearsal(
	t *mlx.Thread, memory *memory, m arch.Model, tensors []Tensor, kv runtime.KVType,
) (*rehearsal, error) {
	weights, err := memory.weights(m, tensors)
	if err != nil {
		return nil, err
	}
	model, err := models.Build(t, m, weights)
	if err != nil {
		weights.Free()
		return nil, err
	}
	r := &rehearsal{
		thread: t, weights: weights, model: model, kept: cache.Packed(model.Layers(), int(kv.Bits())),
		vocab: int(m.Facts().Vocab), ran: map[int]bool{},
	}
	switch d := model.(type) {
	case *nn.Decoder:
		r.decoder = d
	case *models.Decoder:
		r.decoder = d.Decoder
	}
	if r.decoder != nil {
		r.blocks = slices.Clone(r.decoder.Blocks)
		r.kinds, r.last, r.active = kindsOf(m, tensors, len(r.blocks))
	}
	return r, nil
}

func (r *rehearsal) close() { r.weights.Free() }

// Layers are run whole if a token reads at most wholeBytes of their weights, otherwise a few of each kind, which have
// coldBytes, so that they do not stay in caches.
const (
	wholeBytes = 512 << 20
	coldBytes  = 128 << 20
)

// The rows of a step with few rows, and the longest time that a step with many rows may take.
const (
	fewRows     = 32
	longestStep = 400 * time.Millisecond
)

// measure times the steps. If the model has layers that cannot run apart, it fails with an *mlx.Error.
func (r *rehearsal) measure(now *times, context int, whole bool) error {
	return r.thread.Within(func() error {
		all := r.decoder == nil || r.active <= wholeBytes
		cold := func(k kind) int { return int(coldBytes/max(k.bytes, 1)) + 1 }
		one := func(kind) int { return 1 }
		head := r.head()
		now.decode = head + r.total(all, cold, func(layers []int) float64 { return r.decode(layers, 0) })
		now.few = head + r.total(false, one, func(layers []int) float64 { return r.prefill(layers, fewRows, true) })
		if !whole {
			return nil
		}
		if context > 1 {
			deep := r.total(all, cold, func(layers []int) float64 { return r.decode(layers, context) })
			now.context = max(0, head+deep-now.decode)
		}
		r.rowBytes = 0 // constants weigh in a step with few rows
		now.rows = fewRows
		for n := PromptRows; n > fewRows; n /= 2 {
			if now.few*float64(n)/fewRows <= longestStep.Seconds()*float64(len(r.blocks))/float64(max(len(r.kinds), 1)) {
				now.rows = n
				break
			}
		}
		now.prefill = head + r.total(false, one, func(layers []int) float64 { return r.prefill(layers, now.rows, true) })
		now.rowBytes = r.rowBytes
		if r.decoder == nil {
			return nil
		}
		// In the last layer only the last row goes through all of it.
		end := r.kinds[r.last].layers[:1]
		rest := r.prefill(end, now.rows, false) - r.prefill(nil, now.rows, false)
		every := r.prefill(end, now.rows, true) - r.prefill(nil, now.rows, true)
		now.prefill -= max(0, every-rest)
		return nil
	})
}

// total returns the time of a step of the whole model. step times one with some of the layers, and count says how many
// of a kind.
func (r *rehearsal) total(all bool, count func(kind) int, step func(layers []int) float64) float64 {
	if r.decoder == nil {
		return step(nil)
	}
	if all {
		layers := make([]int, len(r.blocks))
		for i := range layers {
			layers[i] = i
		}
		return step(layers)
	}
	none := step(nil)
	sum := none
	for _, k := range r.kinds {
		n := min(len(k.layers), count(k))
		sum += max(0, step(k.layers[:n])-none) * float64(len(k.layers)) / float64(n)
	}
	return sum
}

// choose makes the decoder run some of its layers.
func (r *rehearsal) choose(layers []int) {
	if r.decoder == nil {
		return
	}
	r.decoder.Blocks = nil
	for _, i := range layers {
		r.decoder.Blocks = append(r.decoder.Blocks, r.blocks[i])
		r.ran[i] = true
	}
}

// sequence returns the state of a new sequence.
func (r *rehearsal) sequence() *cache.Sequence { return cache.NewSequence(r.kept) }

// leaveOut drops the state of layers that did not run in the first step.
func leaveOut(seq *cache.Sequence) {
	for i, l := range seq.Layers {
		if l != nil && l.Offset() == 0 {
			seq.Layers[i] = nil
		}
	}
}

// tokens returns different tokens, of the first of a vocabulary.
func (r *rehearsal) tokens(first, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((first + i*7) % min(r.vocab, 1000))
	}
	return ids
}

// decode times a step of one token with some of the layers, after depth tokens.
func (r *rehearsal) decode(layers []int, depth int) float64 {
	r.choose(layers)
	seq, forwards := r.sequence(), models.NewRepeater(r.thread, r.model)
	defer seq.Free()
	defer forwards.Forget()
	step := func(i int) {
		r.thread.Scope(func() { mlx.Eval(forwards.Forward(nn.Part{Seq: seq, Tokens: r.tokens(i, 1)})) })
	}
	step(0)
	leaveOut(seq)
	if depth > 1 {
		seq.Skip(depth - 1)
	}
	const warm = 3 // until a CPU replays a recorded step
	for i := range warm {
		step(i)
	}
	return median(step)
}

// prefill times a step of a prompt's first rows with some of the layers. The rows go through all of the last one if all
// is set.
func (r *rehearsal) prefill(layers []int, rows int, all bool) float64 {
	r.choose(layers)
	step := func(i int) {
		seq := r.sequence()
		defer seq.Free()
		r.thread.Scope(func() {
			r.thread.ResetPeak()
			hidden := models.Forward(r.thread, r.model,
				nn.Part{Seq: seq, Tokens: r.tokens(i, rows), All: all && r.decoder != nil})
			leaveOut(seq)
			mlx.Eval(append(seq.State(), hidden)...)
			m := r.thread.Memory()
			r.rowBytes = max(r.rowBytes, (m.Peak-m.Active+int64(hidden.Bytes()))/int64(rows))
		})
	}
	step(0)
	return median(step)
}

// head times the logits of a token and its sampling.
func (r *rehearsal) head() float64 {
	seq := r.sequence()
	defer seq.Free()
	r.choose(nil)
	var hidden *mlx.Array
	if r.decoder != nil {
		hidden = models.Forward(r.thread, r.model, nn.Part{Seq: seq, Tokens: r.tokens(0, 1)})
	} else {
		hidden = r.model.Embed(mlx.FromSlice(r.thread, r.tokens(0, 1)))
	}
	mlx.Eval(hidden)
	sampler := sample.New(runtime.Sampling{}, nil)
	step := func(int) {
		r.thread.Scope(func() {
			result := sample.Start(r.model.Head(hidden), []sample.Request{{Sampler: sampler, TopLogProbs: -1}})
			mlx.Eval(result.Arrays()...)
			result.Part(0).Read()
		})
	}
	step(0)
	return median(step)
}

// A time is the median of at least leastSteps, and of more until they took steadyTime.
const (
	leastSteps = 3
	mostSteps  = 15
	steadyTime = 30 * time.Millisecond
)

// median returns the median time of steps, in seconds.
func median(step func(i int)) float64 {
	var all []time.Duration
	for begun := time.Now(); len(all) < leastSteps || len(all) < mostSteps && time.Since(begun) < steadyTime; {
		from := time.Now()
		step(len(all) + 1)
		all = append(all, time.Since(from))
	}
	slices.SortFunc(all, cmp.Compare)
	return all[len(all)/2].Seconds()
}
