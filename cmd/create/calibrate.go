package create

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt/calibration"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/calibrate"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

// calibrateOptions are the flags of calibrate.
type calibrateOptions struct {
	texts   []string
	output  string
	tokens  int
	full    bool
	block   int
	float32 bool
	json    bool
	cpu     engines.CPUFlags
}

// calibrateJSON is the output of calibrate.
type calibrateJSON struct {
	Model  string        `json:"model"`
	Digest digest.Digest `json:"digest"` // of the statistics
	Tokens int64         `json:"tokens"`
	Inputs int           `json:"tensors"`            // that have statistics
	Few    []string      `json:"few_rows,omitempty"` // stacks of experts of which some saw few rows
}

func calibrateCommand(a *cli.App) *cobra.Command {
	var o calibrateOptions
	c := &cobra.Command{
		Use:   "calibrate NAME",
		Short: "Measure a model's inputs for better quantization",
		Long: `Run an unquantized model of the store over text, and store the mean squares of the inputs of its linear
layers. "ingot quantize NAME ... --calibration auto" then finds them, for every later quantization of the
same weights, and gives more precision where inputs are large.

The text is a built-in one (prose, code, dialogues by the model's chat template, many scripts), or the files
of --text. At most --tokens tokens are read, fewer once the statistics have converged.

With --full, also store the second moments of the inputs within blocks of columns. The quantization then
also compensates the errors of columns (GPTQ). This takes more time, memory and disk.

The statistics are stored as a referrer of the image, or in FILE with -o. To resume an interrupted run, run
it again.`,
		Example: `  ingot calibrate mymodel
  ingot quantize mymodel mymodel:int4 int4 --calibration auto
  ingot calibrate mymodel --full --text notes.txt -o statistics.safetensors`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return calibrateModel(a, c, args[0], o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.texts, "text", nil, "text `file` instead of the built-in text (repeatable)")
	f.StringVarP(&o.output, "output", "o", "", "write the statistics to `file` instead of the store")
	f.IntVar(&o.tokens, "tokens", calibrate.DefaultTokens, "most `tokens` to read")
	f.BoolVar(&o.full, "full", false, "also measure second moments in blocks")
	f.IntVar(&o.block, "block", defaultBlock, "`columns` of a block of --full, a multiple of 128")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.cpu.Add(c)
	return c
}

// defaultBlock is the size of a block of --full.
const defaultBlock = 512

func calibrateModel(a *cli.App, c *cobra.Command, name string, o calibrateOptions) error {
	if o.tokens <= 0 {
		return cli.Usagef("--tokens %d must be positive", o.tokens)
	}
	if o.block <= 0 || o.block%128 != 0 {
		return cli.Usagef("--block %d must be a multiple of 128", o.block)
	}
	if !o.full {
		o.block = 0
	}
	ctx := c.Context()
	st, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	if err := st.CheckPresent(entry, false); err != nil {
		return err
	}
	if err := models.CheckRequires(st, entry); err != nil {
		return err
	}
	raw, err := st.ResolveRaw(ctx, entry.Name)
	if err != nil {
		return err
	}
	about := statistics.About{
		Image: entry.Digest, Weights: statistics.Weights(entry.Image), Program: "ingot " + cli.Version,
	}
	entry.Image.Layers = slices.DeleteFunc(slices.Clone(entry.Image.Layers), manifest.Layer.Draft)
	texts, err := input.Texts(o.texts)
	if err != nil {
		return err
	}
	kinds, err := calibration.Documents(ctx, st, entry, texts)
	if err != nil {
		return err
	}
	about.Text = calibrate.Digest(kinds)
	set, err := runCalibration(ctx, a, st, entry, kinds, about, &o)
	if err != nil {
		return err
	}
	var d digest.Digest
	if o.output != "" {
		sum := digest.Canonical.Digester()
		err = cli.WriteFile(o.output, func(w io.Writer) error { return set.Write(io.MultiWriter(w, sum.Hash())) })
		d = sum.Digest()
	} else {
		d, err = set.Attach(ctx, st, raw.Descriptor)
	}
	if err != nil {
		return err
	}
	o.state(st, about).Done()
	return printCalibration(a, entry, set, d, o)
}

// state returns the options with the file of the run's state.
func (o *calibrateOptions) state(st *store.Store, about statistics.About) calibrate.Options {
	state := o.output + ".partial"
	if o.output == "" {
		key := digest.FromString(fmt.Sprint(about, o.block, o.tokens, o.float32))
		state = st.Path(store.ScoresDir, "calibration-"+key.Encoded())
	}
	return calibrate.Options{Tokens: o.tokens, Block: o.block, State: state}
}

func runCalibration(
	ctx context.Context, a *cli.App, st *store.Store, entry *store.Entry, kinds [][]calibrate.Document,
	about statistics.About, o *calibrateOptions,
) (*statistics.Set, error) {
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return nil, err
	}
	defer thread.Close()
	engine, err := batch.Open(ctx, thread, st, entry, runtime.Options{Float32: o.float32})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	m := engine.Model()
	windows, err := calibrate.Windows(ctx, m.Processor, kinds)
	if err != nil {
		return nil, err
	}
	bar := cli.TokenProgress{Progress: a.Progress(false), Doing: "calibrating"}
	defer bar.End()
	options := o.state(st, about)
	options.Progress = bar.Set
	if err := os.MkdirAll(filepath.Dir(options.State), 0o755); err != nil {
		return nil, err
	}
	return calibrate.Run(ctx, m, windows, about, options)
}

func printCalibration(a *cli.App, e *store.Entry, set *statistics.Set, d digest.Digest, o calibrateOptions) error {
	few := set.Few()
	for _, f := range few {
		a.Note("note: %s", f)
	}
	if o.json {
		return a.PrintJSON(calibrateJSON{e.Name.String(), d, set.Tokens, len(set.Tensors()), few})
	}
	_, err := fmt.Fprintf(a.Out, "%s: statistics of %d tensors over %d tokens\n", d, len(set.Tensors()), set.Tokens)
	return err
}
