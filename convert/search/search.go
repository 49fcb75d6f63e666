// Package search chooses a type for each tensor of a model, so that the model diverges least from its source at a size,
// or is the smallest at a divergence.
//
// It works in four steps:
//   - Each tensor is quantized to each type, in samples of its rows. The error of its outputs follows from the second
//     moments of its inputs; without statistics, all inputs count the same.
//   - Tensors are divided into groups: of one kind, and of neighbouring layers. The divergence of the model with only
//     one group quantized tells how much the errors of that group count.
//   - A knapsack over the convex hulls of all tensors finds the types.
//   - The divergence of the result is measured. Groups are weighed again around it, and types chosen again. The better
//     result wins.
//
// Contract:
//   - The sizes of a result are those of the image, to the byte.
//   - The result is a recipe, which can be stored and used without the search. Another machine, whose rounding differs,
//     may find another one.
//   - It holds a few rows of each tensor, the factors of a few inputs, and the models that it compares.
package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize/recipe"
)

// ErrGoal reports a goal that no choice of types meets.
var ErrGoal = fault.Register(errors.New("no choice of types meets the goal"), fault.Kind{
	Name: "convert/search.ErrGoal", Means: "a size or a divergence that no choice of types reaches was asked for",
	Rank: fault.Import + 3, Status: fault.Invalid,
})

// Goal is what a result has to meet: Bytes, Bits or MaxKL, of which the first that is set counts.
type Goal struct {
	Bytes int64   // most bytes of all tensors
	Bits  float64 // most bits for each weight, over all tensors
	MaxKL float64 // largest mean divergence in nats; the smallest model that meets it is chosen, or the fastest
	Speed bool    // count the time of a token instead of bytes: by type, and by the share of a tensor that is read
}

// Options control a search.
type Options struct {
	Goal
	// Measure returns the mean divergence of an image from the unquantized one over the text of the search. Accept does so
	// over the text that MaxKL is about.
	Measure, Accept func(ctx context.Context, img, plain manifest.Image) (float64, error)
	Progress        func(Event) // may be nil
	// Measured says all that Measure depends on beside the images. Results of searches that depend on the same are kept;
	// "" = they are not.
	Measured string
}

// Event is a step of a search.
type Event struct {
	Step        string // "errors of types", "sensitivity", "sensitivity of the result" or "result"
	Done, Total int
}

// Input is a model whose types are chosen.
type Input struct {
	Plain manifest.Image  // unquantized, in the store
	Rules precision.Rules // say which tensors are quantized at all
	Share func(table.Spec) float64
	Ask   recipe.Precision // types of the draft, and rules, which come first
	// Plan plans an image of the unquantized one, and Write writes its blobs.
	Plan     func(context.Context, recipe.Precision) (*plan.Plan, error)
	Write    func(context.Context, *plan.Plan) (manifest.Image, error)
	Parallel int
	// State is a file that keeps what does not depend on the goal, for the next search with the same Key: all that it
	// does depend on. "" = none.
	State, Key string
}

// Found is the result of a search.
type Found struct {
	Precision recipe.Precision `json:"recipe"`
	Bytes     int64            `json:"bytes"` // of all tensors
	Bits      float64          `json:"bits_per_weight"`
	Predicted float64          `json:"predicted_kl"`
	MeanKL    float64          `json:"mean_kl"`  // measured
	Measured  int              `json:"measured"` // how many divergences were measured
	Types     []plan.ByType    `json:"types"`    // largest first
	Curve     []Point          `json:"curve"`    // by size
}

// Point is a point of the trade-off between size and divergence.
type Point struct {
	Bytes     int64    `json:"bytes"`
	Bits      float64  `json:"bits_per_weight"`
	Predicted float64  `json:"predicted_kl"`
	MeanKL    *float64 `json:"mean_kl,omitempty"` // nil if it was not measured
	Chosen    bool     `json:"chosen,omitempty"`
}

// searcher is a search in progress.
type searcher struct {
	Input
	Options
	tensors []*tensor
	groups  []group
	fixed   int64 // bytes of tensors without a choice
	params  int64 // of all tensors
	blobs   map[blobKey]manifest.Layer
	trials  []trial
	known   known

	measured int // how many divergences
}

// trial is a measured choice.
type trial struct {
	choice    choice
	predicted float64
	kl        float64
}

// Run searches.
func Run(ctx context.Context, in Input, o Options) (*Found, error) {
	s := &searcher{Input: in, Options: o, blobs: map[blobKey]manifest.Layer{}}
	if err := s.candidates(ctx); err != nil {
		return nil, err
	}
	s.remember()
	if !s.recallErrors() {
		if err := s.errors(ctx); err != nil {
			return nil, err
		}
		s.keepErrors()
	}
	if err := s.weigh(ctx); err != nil {
		return nil, err
	}
	var best trial
	var err error
	if limit := s.limit(); limit > 0 {
		best, err = s.bySize(ctx, limit)
	} else {
		best, err = s.byDivergence(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.found(best), nil
}

// limit returns the most bytes of all tensors; 0 if the goal is a divergence.
func (s *searcher) limit() int64 {
	if s.Bytes > 0 {
		return s.Bytes
	}
	return int64(s.Bits * float64(s.params) / 8)
}

// bySize finds the best choice within a size.
func (s *searcher) bySize(ctx context.Context, limit int64) (trial, error) {
	if smallest, ok := s.within(limit); !ok {
		return trial{}, fmt.Errorf("%w: the smallest types take %d bytes, %.2f bits for each weight; %d were asked for",
			ErrGoal, s.bytes(smallest), s.bits(s.bytes(smallest)), limit)
	}
	same := s.start(limit)
	first, _ := s.within(limit)
	best, err := s.try(ctx, first, s.measure)
	if err != nil || same {
		return best, err
	}
	before := slices.Clone(s.groups)
	if err := s.reweigh(ctx, best); err != nil {
		return best, err
	}
	second, _ := s.within(limit)
	next, err := s.try(ctx, second, s.measure)
	if err != nil {
		return best, err
	}
	if next.kl < best.kl {
		best = next
	} else {
		s.groups = before
	}
	s.keepAround(limit)
	return best, nil
}

// maxSteps bounds the choices that are measured for a divergence.
const maxSteps = 8

// near is the share of the largest divergence that is good enough for the smallest model.
const near = 0.93

// byDivergence finds the cheapest choice with a divergence. What the last one had more than predicted corrects the
// next.
func (s *searcher) byDivergence(ctx context.Context) (best trial, err error) {
	goal, found := s.MaxKL, false
	var last choice
	for step := range maxSteps {
		c, reached := s.below(goal)
		if slices.Equal(c, last) {
			break
		}
		t, err := s.try(ctx, c, s.accept)
		if err != nil {
			return best, err
		}
		good := t.kl <= s.MaxKL
		if good && (!found || s.cost(c) < s.cost(best.choice)) {
			best, found = t, true
		}
		if good && t.kl >= near*s.MaxKL || !good && !reached {
			break
		}
		if step == 0 {
			if err := s.reweigh(ctx, t); err != nil {
				return best, err
			}
		}
		last = c
		goal = s.loss(c) * min(max(s.MaxKL*(1+near)/2/max(t.kl, 1e-9), 0.25), 4)
	}
	if !found {
		return best, fmt.Errorf("%w: no types with a mean KL divergence of at most %.3g nats were found", ErrGoal, s.MaxKL)
	}
	return best, nil
}

// try measures a choice.
func (s *searcher) try(
	ctx context.Context, c choice, measure func(context.Context, choice) (float64, error),
) (t trial, err error) {
	s.report("result", len(s.trials), len(s.trials)+1)
	t = trial{choice: c, predicted: s.loss(c)}
	t.kl, err = measure(ctx, c)
	s.trials = append(s.trials, t)
	return t, err
}

func (s *searcher) report(step string, done, total int) {
	if s.Progress != nil {
		s.Progress(Event{step, done, total})
	}
}

// bits returns the bits of a weight of a model with the given bytes.
func (s *searcher) bits(bytes int64) float64 {
	return 8 * float64(bytes) / math.Max(float64(s.params), 1)
}
