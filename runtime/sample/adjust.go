package sample

import (
	"math"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// adjust applies bias, penalties and masks to logits.
func (s samplingMode) adjust(logits *mlx.Array, rows []row) *mlx.Array {
	if s.edited {
		logits = edit(mlx.AsType(logits, mlx.Float32), rows)
	}
	if s.masked {
		logits = masked(logits, rows)
	}
	return logits
}

// logitEdit changes the logit of one token: it adds bias, then divides a positive logit by penalty or multiplies a
// negative one by it, then subtracts. mlx-lm and llama.cpp use the same order: they penalize biased logits.
type logitEdit struct {
	id                      int32
	bias, penalty, subtract float32
}

// edit applies the logit edits of all rows with one gather and one scatter.
func edit(logits *mlx.Array, rows []row) *mlx.Array {
	t, vocab := logits.Thread(), logits.Dim(-1)
	lists := make([][]logitEdit, len(rows))
	longest := 1
	for i, r := range rows {
		lists[i] = r.logitEdits(vocab)
		longest = max(longest, len(lists[i]))
	}
	n := len(rows) * longest
	ids := make([]int32, n)
	bias, times, over, less := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	biased := false
	for i, list := range lists {
		c := logitEdit{penalty: 1}
		for j := range longest {
			if j < len(list) { // pad with the last edit: its result is the same
				c = list[j]
			}
			at := i*longest + j
			ids[at], bias[at], times[at], over[at], less[at] = c.id, c.bias, c.penalty, 1/c.penalty, c.subtract
			biased = biased || c.bias != 0
		}
	}
	at := mlx.FromSlice(t, ids, len(rows), longest)
	values := func(list []float32) *mlx.Array { return mlx.FromSlice(t, list, len(rows), longest) }
	x := mlx.TakeAlongAxis(logits, at, -1)
	if biased {
		x = mlx.Add(x, values(bias))
	}
	x = mlx.Multiply(x, mlx.Where(mlx.Less(x, mlx.Scalar(t, float32(0))), values(times), values(over)))
	return mlx.PutAlongAxis(logits, at, mlx.Subtract(x, values(less)), -1)
}

// editsLogits reports whether logits of single tokens are changed.
func editsLogits(s *runtime.Sampling) bool {
	return s.Penalizes() || len(s.LogitBias) > 0 || len(s.Suppress) > 0
}

// logitEdits lists the edits of a row's logits. It ignores tokens outside the vocabulary.
func (r row) logitEdits(vocab int) []logitEdit {
	var list []logitEdit
	place := map[int32]int{}
	of := func(id int32) *logitEdit {
		i, ok := place[id]
		if !ok {
			i = len(list)
			place[id] = i
			list = append(list, logitEdit{id: id, penalty: 1})
		}
		return &list[i]
	}
	inside := func(id int32) bool { return id >= 0 && int(id) < vocab }
	s := &r.Sampler.sampling
	for id, b := range s.LogitBias {
		if inside(id) {
			of(id).bias = float32(b)
		}
	}
	if s.Penalizes() {
		repeat := s.RepeatPenalty
		if repeat <= 0 {
			repeat = 1
		}
		count := map[int32]int{}
		for _, part := range r.recent() {
			for _, id := range part {
				if inside(id) {
					count[id]++
				}
			}
		}
		for id, n := range count {
			c := of(id)
			c.penalty = float32(repeat)
			c.subtract = float32(s.PresencePenalty + s.FrequencyPenalty*float64(n))
		}
	}
	for _, id := range s.Suppress {
		if inside(id) {
			of(id).subtract = float32(math.Inf(1))
		}
	}
	return list
}

// recent returns the tokens that penalties apply to: the last ones of the history and of the drafts before the row.
func (r row) recent() [2][]int32 {
	history, drafts := r.Sampler.history, r.Drafts[:r.at]
	if n := r.Sampler.sampling.RepeatLastN; n >= 0 {
		drafts = drafts[max(0, len(drafts)-n):]
		history = history[max(0, len(history)-(n-len(drafts))):]
	}
	return [2][]int32{history, drafts}
}

// masked sets the logits of tokens outside their row's mask to -Inf.
func masked(logits *mlx.Array, rows []row) *mlx.Array {
	t, vocab := logits.Thread(), logits.Dim(-1)
	may := make([]bool, len(rows)*vocab)
	for i, r := range rows {
		unpackBits(may[i*vocab:(i+1)*vocab], r.mask)
	}
	return mlx.Where(mlx.FromSlice(t, may, len(rows), vocab), logits, mlx.Full(t, math.Inf(-1), logits.DType()))
}

// byteBits holds the bits of each byte value, lowest first.
var byteBits = func() (table [256][8]bool) {
	for b := range table {
		for i := range table[b] {
			table[b][i] = b>>i&1 != 0
		}
	}
	return table
}()

// unpackBits writes each bit to an element, lowest first.
func unpackBits(to []bool, bits []uint32) {
	for _, word := range bits {
		if len(to) < 32 {
			for i := range to {
				to[i] = word>>i&1 != 0
			}
			return
		}
		for i := range 4 {
			*(*[8]bool)(to[i*8:]) = byteBits[byte(word>>(8*i))]
		}
		to = to[32:]
	}
}
