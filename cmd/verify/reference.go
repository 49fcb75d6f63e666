package verify

import (
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/verify"
	"github.com/spf13/cobra"
)

type referenceJSON struct {
	Tokens      int     `json:"tokens"`
	MaxAbs      float64 `json:"max_abs"`
	MeanAbs     float64 `json:"mean_abs"`
	MeanKL      float64 `json:"mean_kl"`
	Top1        float64 `json:"top1"`
	GreedyEqual *bool   `json:"greedy_equal,omitempty"`
	OK          bool    `json:"ok"`

	ComputeType string  `json:"compute_type"` // of activations, such as bfloat16
	MaxKL       float64 `json:"max_kl"`       // limit of mean_kl
	MinTop1     float64 `json:"min_top1"`     // limit of top1
}

// verifyReference compares a model's logits with those of another implementation.
func verifyReference(a *cli.App, c *cobra.Command, name string, o verifyOptions) error {
	ctx := c.Context()
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	pictures, err := input.Pictures(o.images)
	if err != nil {
		return err
	}
	ref, err := quality.ReadReference(o.reference)
	if err != nil {
		return err
	}
	st, entry, err := resolve(a, c, name)
	if err != nil {
		return err
	}
	model, done, err := o.open(ctx, a, st, entry, runtime.Options{Float32: o.float32, KV: kv})
	if err != nil {
		return err
	}
	defer done()
	limits := verify.LimitsFor(model.Model().Weights.DType)
	if !c.Flags().Changed("max-kl") {
		o.maxKL = limits.MaxKL
	}
	if !c.Flags().Changed("min-top1") {
		o.minTop1 = limits.MinTop1
	}
	compute := model.Model().Weights.DType
	r, greedy, err := verify.Compare(ctx, model, ref, pictures...)
	if err != nil {
		return err
	}
	ok := r.MeanKL <= o.maxKL && r.Top1 >= o.minTop1
	if o.json {
		err = a.PrintJSON(referenceJSON{r.Tokens, r.MaxAbs, r.MeanAbs, r.MeanKL, r.Top1, greedy, ok, compute.String(),
			o.maxKL, o.minTop1})
	} else {
		err = printComparison(a, r, greedy, ok, compute, o)
	}
	if err == nil && !ok {
		return cli.ErrFailed
	}
	return err
}

func printComparison(a *cli.App, r verify.Comparison, greedy *bool, ok bool, compute mlx.DType,
	o verifyOptions) error {
	status := "ok"
	if !ok {
		status = "FAILED"
	}
	text := fmt.Sprintf("%s: %d tokens, computed in %s\n", status, r.Tokens, compute)
	text += fmt.Sprintf("  largest difference  %.3g (%.3g standard deviations)\n", r.MaxAbs, r.MaxAbs/r.Scale)
	text += fmt.Sprintf("  mean difference     %.3g\n", r.MeanAbs)
	text += fmt.Sprintf("  mean divergence     %.3g nats (at most %.3g)\n", r.MeanKL, o.maxKL)
	text += fmt.Sprintf("  equal top tokens    %.2f %% (at least %.2f %%)\n", 100*r.Top1, 100*o.minTop1)
	if greedy != nil {
		text += fmt.Sprintf("  greedy text equal   %v\n", *greedy)
	}
	if !ok && compute != mlx.Float32 {
		text += fmt.Sprintf("With --float32, the same weights are computed without the rounding of %s.\n", compute)
	}
	_, err := fmt.Fprint(a.Out, text)
	return err
}
