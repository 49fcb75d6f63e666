package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/convert/plan"
	stored "github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/runtime/speed"
)

// errNoSpeed says why there are no speeds.
var errNoSpeed = errors.New("speed is unknown")

// speeds predicts the speed of a model in each of the plans by the engine of this machine, which it never installs.
// program is the memory of this process with an engine without a model, 0 if it is unknown.
func speeds(
	ctx context.Context, a *cli.App, m arch.Model, plans []*plan.Plan, o fitOptions,
) (p speed.Prediction, program int64, err error) {
	if len(plans) == 0 {
		return p, 0, fmt.Errorf("%w: no type fits in memory", errNoSpeed)
	}
	if o.machine != "" {
		return p, 0, fmt.Errorf("%w: --for is about another machine", errNoSpeed)
	}
	if err := mlx.Available(); err != nil {
		return p, 0, fmt.Errorf("%w: %w", errNoSpeed, err)
	}
	if _, err := engine.Find(engine.Options{}); err != nil {
		return p, 0, fmt.Errorf("%w: %w; install it with `ingot engine install`", errNoSpeed, err)
	}
	kv, err := o.kv.Value()
	if err != nil {
		return p, 0, err
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return p, 0, err
	}
	defer thread.Close()
	own, _ := fit.Resident() // before anything is measured
	sets := make([][]speed.Tensor, len(plans))
	for i, of := range plans {
		for _, t := range of.Tensors {
			if stored.IsDraft(t.Name) {
				continue
			}
			packed := t.Coding.Target
			if packed.IsCast() {
				packed = 0
			}
			sets[i] = append(sets[i], speed.Tensor{Name: t.Name, Type: packed, Arrays: t.Arrays})
		}
	}
	p, err = speed.Predict(ctx, thread, m, sets, speed.Use{Context: o.context, KV: kv})
	_, files := fit.Resident() // now with the code that runs a model
	return p, own + files, err
}
