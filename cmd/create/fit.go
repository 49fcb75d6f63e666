package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/runtime/speed"
	"github.com/spf13/cobra"
)

// fitOptions are the flags of fit.
type fitOptions struct {
	machine string
	context int
	kv      engines.KVFlag
	cpu     engines.CPUFlags
	noSpeed bool
	json    bool
}

// fitJSON is the output of fit.
type fitJSON struct {
	Model   string        `json:"model"`
	Memory  int64         `json:"memory"`  // that a model may use
	Context int           `json:"context"` // tokens
	Types   []fitTypeJSON `json:"types"`   // the largest first
	// NoSpeed says why no type has a speed.
	NoSpeed string `json:"no_speed,omitempty"`
}

type fitTypeJSON struct {
	Type  string     `json:"type"` // "source" is the source's
	Bytes int64      `json:"bytes"`
	Bits  float64    `json:"bits_per_weight"`
	Need  fit.Memory `json:"memory"`
	Total int64      `json:"total_memory"`
	Fits  bool       `json:"fits"`

	// Speed is of a type that fits, measured with made-up weights.
	Speed *speed.Speed `json:"speed,omitempty"`
	// Certificate is the one that was stored last, of a source that is a model of the store.
	Certificate *certify.Certificate `json:"certificate,omitempty"`
}

func fitCommand(a *cli.App) *cobra.Command {
	var o fitOptions
	c := &cobra.Command{
		Use:   "fit SOURCE",
		Short: "Show the size, memory and speed of a model by type",
		Long: `Show the size of a model in each type, and whether it fits in the memory of this machine, or of --for,
with a sequence of --context tokens. SOURCE is a model of the store, a checkpoint folder, a GGUF file, or a
repository of a hub: hf.co/ORG/REPO[@REVISION][:FILE-OR-TYPE]. Only headers of its files are read.

Sizes are exact: they are the bytes of the tensors that "ingot create -q TYPE" makes. Memory is that of "ingot
run" with one sequence: the weights, the state of the sequence, and what a step of its prompt and the program
take. The prefix cache of a server takes more where there is more.

Speeds are tokens per second on this machine, of types that fit: decode at the beginning and after --context
tokens, and prefill of 512 tokens. They are measured, in one to four seconds, by the installed engine with
some layers of the model and made-up weights, so a busy machine shows what is left of it. Without an engine,
and for another machine (--for), speeds are unknown, and memory is a rougher estimate.

A model of the store that has a certificate ("ingot verify --certify") is shown with its mean divergence.`,
		Example: `  ingot fit hf.co/Qwen/Qwen3-8B
  ingot fit mymodel --for 16GB --context 32768`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return fitSource(a, c, args[0], o) },
	}
	f := c.Flags()
	f.StringVar(&o.machine, "for", "", "memory `SIZE` of the machine (default this machine's)")
	f.IntVar(&o.context, "context", 0, "`tokens` of a sequence (default 4096)")
	o.kv.Add(c)
	o.cpu.Add(c)
	f.BoolVar(&o.noSpeed, "no-speed", false, "do not predict the speed")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// fitTypes are the types that fit shows, beside the source's.
var fitTypes = []quantize.Type{
	quantize.Int8, quantize.MXFP8, quantize.Int6, quantize.Int5, quantize.Int4, quantize.NVFP4, quantize.MXFP4,
	quantize.Int3, quantize.Int2,
}

func fitSource(a *cli.App, c *cobra.Command, arg string, o fitOptions) error {
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	if o.context < 0 {
		return cli.Usagef("--context %d must be positive", o.context)
	}
	memory, err := memoryFor(o.machine)
	if err != nil {
		return err
	}
	precisions := []recipe.Precision{{}}
	for _, t := range fitTypes {
		precisions = append(precisions, recipe.Precision{Type: t})
	}
	from := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: arg}}}
	options := convert.Options{Version: cli.Version, Remote: transfer.Hub(a, transfer.HubFlags{}, 0)}
	sizes, err := convert.Plan(c.Context(), cli.ExistingStore, from, options, precisions)
	if err != nil {
		return err
	}
	use := fit.Use{Context: o.context, KV: kv}
	out := fitJSON{Model: arg, Memory: memory, Context: fit.ContextOf(sizes.Model, use)}
	var fitting []*plan.Plan
	var of []int // of the types of fitting
	for i, p := range sizes.Plans {
		name := recipe.Source
		if precisions[i].Type != 0 {
			name = precisions[i].Type.String()
		}
		if errors.Is(sizes.Err[i], source.ErrSource) {
			continue // the source is quantized already
		}
		if sizes.Err[i] != nil {
			return sizes.Err[i]
		}
		need := fit.Need(sizes.Model, p.Totals.Bytes, use)
		t := fitTypeJSON{
			Type: name, Bytes: p.Totals.Bytes, Bits: p.Totals.BitsPerWeight, Need: need, Total: need.Total(),
			Fits: need.Total() <= memory,
		}
		if name == recipe.Source {
			if t.Certificate, err = lastCertificate(c.Context(), a, arg); err != nil {
				return err
			}
		}
		out.Types = append(out.Types, t)
		if t.Fits {
			fitting, of = append(fitting, p), append(of, len(out.Types)-1)
		}
	}
	if !o.noSpeed {
		o.context = out.Context
		made, program, err := speeds(c.Context(), a, sizes.Model, fitting, o)
		switch {
		case errors.Is(err, errNoSpeed):
			out.NoSpeed = err.Error()
		case err != nil:
			return err
		}
		use.Program, use.RowBytes, use.Constants = program, made.RowBytes, made.Constants
		for i, s := range made.Speeds {
			t := &out.Types[of[i]]
			t.Speed, use.Prefill = &s, s.Prefill
			t.Need = fit.Need(sizes.Model, t.Bytes, use)
			t.Total = t.Need.Total()
			t.Fits = t.Total <= memory
		}
	}
	slices.SortStableFunc(out.Types, func(a, b fitTypeJSON) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return printFit(a, out, o.json)
}

// lastCertificate returns the certificate that was stored last for a model of the store, or nil.
func lastCertificate(ctx context.Context, a *cli.App, arg string) (*certify.Certificate, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, nil // a folder or a repository
	}
	st, err := cli.ExistingStore()
	if err != nil {
		return nil, nil
	}
	raw, err := st.ResolveRaw(ctx, name)
	if err != nil {
		return nil, nil
	}
	list, err := view.Certificates(ctx, a, st, raw.Descriptor.Digest)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

func printFit(a *cli.App, out fitJSON, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(out)
	}
	w := cli.NewTable(a.Out)
	header := []string{"TYPE", "BITS/WEIGHT", "SIZE", "MEMORY", "FITS"}
	timed := slices.ContainsFunc(out.Types, func(t fitTypeJSON) bool { return t.Speed != nil })
	if timed {
		header = append(header, "DECODE", fmt.Sprintf("AT %d", out.Context), "PREFILL")
	}
	certified := slices.ContainsFunc(out.Types, func(t fitTypeJSON) bool { return t.Certificate != nil })
	if certified {
		header = append(header, "MEAN KL")
	}
	w.Row(header...)
	for _, t := range out.Types {
		fits := "no"
		if t.Fits {
			fits = "yes"
		}
		row := []string{t.Type, fmt.Sprintf("%.2f", t.Bits), cli.Size(t.Bytes), cli.Size(t.Total), fits}
		if s := t.Speed; s != nil {
			row = append(row, perSecond(s.Decode), perSecond(s.Deep), perSecond(s.Prefill))
		} else if timed {
			row = append(row, "", "", "")
		}
		if f := t.Certificate; f != nil {
			row = append(row, fmt.Sprintf("%.3g +- %.2g", f.Figures.MeanKL.Value, f.Figures.MeanKL.Error))
		} else if certified {
			row = append(row, "")
		}
		w.Row(row...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.Note("memory for models: %s; context: %d tokens", cli.Size(out.Memory), out.Context)
	if timed {
		a.Note("speeds are in tokens per second")
	} else if out.NoSpeed != "" {
		a.Note("%s", out.NoSpeed)
	}
	return nil
}

// perSecond formats tokens per second.
func perSecond(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
