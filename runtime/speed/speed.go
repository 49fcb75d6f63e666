package speed

import (
	"context"
	"errors"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// Speed is in tokens per second.
type Speed struct {
	Decode  float64 `json:"decode"`            // of the first tokens
	Deep    float64 `json:"decode_at_context"` // after as many tokens as the context has
	Prefill float64 `json:"prefill"`           // of a prompt of [PromptRows] tokens
}

// PromptRows is the length of the prompt whose prefill is predicted.
const PromptRows = 512

// Use says how a model runs.
type Use struct {
	Context int
	KV      runtime.KVType
}

// Prediction is of a model with several sets of types of its tensors.
type Prediction struct {
	Speeds []Speed // parallel to the sets

	// Memory that a run takes beside weights and state, with the first set.
	RowBytes  int64 // of a row of a prompt while it is evaluated
	Constants int64 // arrays that are computed from the weights
}

// Predict predicts the speed and the memory of a model. The first set of types is timed thoroughly; for the others,
// prefill is scaled by steps with few rows, and what the context takes is the first one's. It takes one to four seconds
// of the engine's time. The machine should be as idle as when the model runs.
func Predict(ctx context.Context, t *mlx.Thread, m arch.Model, sets [][]Tensor, u Use) (p Prediction, err error) {
	err = t.Do(ctx, func() error {
		memory, err := newMemory(t, sets...)
		if err != nil {
			return err
		}
		defer memory.close()
		var first times
		for i, tensors := range sets {
			if err := ctx.Err(); err != nil {
				return err
			}
			now, err := measure(t, memory, m, tensors, u, i == 0)
			if err != nil {
				return err
			}
			if i == 0 {
				first, p.RowBytes, p.Constants = now, now.rowBytes, now.constants
			} else {
				now.context, now.rows = first.context, first.rows
				now.prefill = first.prefill * now.few / first.few
			}
			p.Speeds = append(p.Speeds, now.speed())
		}
		return nil
	})
	return p, err
}

// times are in seconds.
type times struct {
	decode  float64 // of a token at the beginning
	context float64 // that a token takes more after the context
	few     float64 // of a step with few rows of a prompt
	prefill float64 // of a step with rows rows of a prompt
	rows    int

	rowBytes  int64 // of memory, that a row of this step took
	constants int64
}

func (t times) speed() Speed {
	return Speed{Decode: 1 / t.decode, Deep: 1 / (t.decode + t.context), Prefill: float64(t.rows) / t.prefill}
}

// measure times a model with one set of types. With whole unset only decode and few.
func measure(
	t *mlx.Thread, memory *memory, m arch.Model, tensors []Tensor, u Use, whole bool,
) (now times, err error) {
	before := t.Memory().Active
	r, err := newRehearsal(t, memory, m, tensors, u.KV)
	if err != nil {
		return now, err
	}
	defer r.close()
	err = r.measure(&now, u.Context, whole)
	if wrong := (*mlx.Error)(nil); errors.As(err, &wrong) && r.decoder != nil {
		r.decoder = nil // its layers cannot run apart
		err = r.measure(&now, u.Context, whole)
	}
	// What a layer computes once, when it first runs.
	now.constants = t.Memory().Active - before
	if n := len(r.ran); n > 0 {
		now.constants = now.constants * int64(len(r.blocks)) / int64(n)
	}
	return now, err
}
