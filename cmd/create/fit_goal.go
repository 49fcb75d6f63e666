package create

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/bytesize"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/fit"
)

// fitGoal returns the size of the tensors that run on a machine: its memory, or that of --for, less what a sequence
// with the context takes.
func fitGoal(
	ctx context.Context, from *modelfile.File, options convert.Options, f searchFlags,
) (search.Goal, error) {
	memory, err := memoryFor(f.machine)
	if err != nil {
		return search.Goal{}, err
	}
	options.Precision, options.Calibration = recipe.Precision{}, ""
	p, err := convert.DryRun(ctx, cli.ExistingStore, from, options)
	if err != nil {
		return search.Goal{}, err
	}
	m, err := modelOf(p)
	if err != nil {
		return search.Goal{}, err
	}
	other := fit.Need(m, 0, fit.Use{Context: f.context}).Total()
	if other >= memory {
		return search.Goal{}, fmt.Errorf("%w: state and activations take %s beside the weights, and there are %s; "+
			"use a shorter --context", search.ErrGoal, cli.Size(other), cli.Size(memory))
	}
	return search.Goal{Bytes: min(memory-other, p.Totals.Bytes), Speed: f.speed}, nil
}

// memoryFor returns the memory of a machine that a model may use, of which text is the whole; "" is this machine.
func memoryFor(text string) (int64, error) {
	if text == "" {
		return runtime.MachineMemory(), nil
	}
	whole, err := bytesize.Parse(text)
	if err != nil {
		return 0, cli.Usagef("--for: %v", err)
	}
	return runtime.UsableMemory(whole), nil
}

// modelOf parses the configuration of a plan.
func modelOf(p *plan.Plan) (arch.Model, error) {
	for _, f := range p.Files {
		if f.Name == source.ConfigName {
			return arch.Detect(f.Data)
		}
	}
	return nil, fmt.Errorf("the model has no %s", source.ConfigName)
}
