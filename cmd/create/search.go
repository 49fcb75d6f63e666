package create

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/internal/limits/bytesize"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/calibrate"
	"github.com/spf13/cobra"
)

// searchFlags are the flags of a search of types.
type searchFlags struct {
	target, text, svg string
	machine           string
	context           int
	speed             bool
}

const targetFlag = "target-size"

func (f *searchFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.target, targetFlag, "", "search types for a `SIZE`: 4.5bpw, 5GB, or fit")
	flags.StringVar(&f.machine, "for", "", "memory `SIZE` for fit (default this machine's)")
	flags.IntVar(&f.context, "context", 0, "context in `tokens` for fit (default 4096)")
	flags.BoolVar(&f.speed, "speed", false, "search: count the time of a token instead of bytes")
	flags.StringVar(&f.text, "search-text", "", "text `file` to search over (default a built-in text)")
	flags.StringVar(&f.svg, "svg", "", "`file` for a plot of the search: divergence over size")
}

// searches reports whether types are searched: for a size, or for a divergence without a type.
func (o createOptions) searches(p recipe.Precision) bool {
	return o.search.target != "" || o.maxKL != 0 && p.Type == 0 && o.quantize == "" && o.recipe == ""
}

// checkSearch checks the flags of a search.
func (o createOptions) checkSearch(p recipe.Precision) error {
	f := o.search
	switch {
	case f.target != "" && (p.Type != 0 || o.quantize != "" || o.recipe != ""):
		return cli.Usagef("--%s chooses the types: leave out the type and the recipe", targetFlag)
	case f.target == "" && (f.machine != "" || f.context != 0):
		return cli.Usagef("--for and --context require --%s fit", targetFlag)
	case f.target != fitTarget && (f.machine != "" || f.context != 0):
		return cli.Usagef("--for and --context require --%s fit; %s is a size already", targetFlag, f.target)
	case f.context < 0:
		return cli.Usagef("--context %d must be positive", f.context)
	case !o.searches(p) && (f.speed || f.text != "" || f.svg != ""):
		return cli.Usagef("--speed, --search-text and --svg require --%s, or --%s without a type", targetFlag, maxKLFlag)
	case o.searches(p) && o.dryRun:
		return cli.Usagef("--dry-run cannot search types: a search runs the model; use `ingot fit` for sizes")
	case f.target != "" && f.target != fitTarget:
		_, err := f.goal()
		return err
	}
	return nil
}

// fitTarget is the size of what runs on a machine.
const fitTarget = "fit"

// goal parses a size that is not fit.
func (f searchFlags) goal() (search.Goal, error) {
	if number, ok := strings.CutSuffix(strings.ToLower(f.target), "bpw"); ok {
		bits, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(bits > 0 && bits <= 32) {
			return search.Goal{}, cli.Usagef("--%s %q: the bits of a weight are a number up to 32, as in 4.5bpw",
				targetFlag, f.target)
		}
		return search.Goal{Bits: bits, Speed: f.speed}, nil
	}
	bytes, err := bytesize.Parse(f.target)
	if err != nil {
		return search.Goal{}, cli.Usagef("--%s %q: want bits of a weight as in 4.5bpw, a size as in 5GB, or fit",
			targetFlag, f.target)
	}
	return search.Goal{Bytes: bytes, Speed: f.speed}, nil
}

// searchTypes sets the search of a create. The function that it returns ends what the search uses.
func searchTypes(
	ctx context.Context, a *cli.App, st *store.Store, name manifest.Name, from *modelfile.File, options *convert.Options,
	o createOptions, check *qualityCheck,
) (func(), error) {
	goal := search.Goal{MaxKL: o.maxKL, Speed: o.search.speed}
	var err error
	switch o.search.target {
	case "":
	case fitTarget:
		goal, err = fitGoal(ctx, from, *options, o.search)
	default:
		goal, err = o.search.goal()
	}
	if err != nil {
		return nil, err
	}
	text := calibrate.Sample(searchText)
	if o.search.text != "" {
		if text, err = input.Text(o.search.text); err != nil {
			return nil, err
		}
	}
	var thread *mlx.Thread
	closeAll := func() {}
	if check != nil {
		thread = check.thread
	} else {
		if thread, err = engines.Open(ctx, a, engines.CPUFlags{}); err != nil {
			return nil, err
		}
		closeAll = thread.Close
	}
	measured := models.Images(st, thread, runtime.Options{})
	bar := a.Progress(false)
	begun := time.Now()
	options.Search = &search.Options{Goal: goal, Measure: measured.MeanKL(name, text), Progress: func(e search.Event) {
		bar.Line(fmt.Sprintf("searching types: %s, %d of %d, %s", e.Step, e.Done, e.Total,
			time.Since(begun).Round(time.Second)))
	}}
	options.Search.Measured = cli.Version + "\n" + text
	if check != nil {
		check.searched, check.chosen = []string{text}, o.search.target == ""
	}
	if check != nil && check.chosen {
		options.Search.Accept = measured.MeanKL(name, check.text)
	}
	end := closeAll
	return func() { bar.End(); end() }, nil
}

// searchText is about how many bytes of the built-in text a search reads.
const searchText = 3 << 10

// printSearch prints the trade-off of a search.
func printSearch(a *cli.App, f *search.Found) error {
	if f == nil {
		return nil
	}
	w := cli.NewTable(a.Out)
	w.Row("BITS/WEIGHT", "SIZE", "PREDICTED KL", "MEASURED KL", "")
	for _, p := range f.Curve {
		measured, mark := "", ""
		if p.MeanKL != nil {
			measured = fmt.Sprintf("%.4g", *p.MeanKL)
		}
		if p.Chosen {
			mark = "chosen"
		}
		w.Row(fmt.Sprintf("%.3f", p.Bits), cli.Size(p.Bytes), fmt.Sprintf("%.4g", p.Predicted), measured, mark)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	w.Row("TYPE", "TENSORS", "PARAMETERS", "SIZE")
	for _, t := range f.Types {
		w.Row(t.Type, fmt.Sprint(t.Tensors), cli.Count(t.Params), cli.Size(t.Bytes))
	}
	return w.Flush()
}

// plot writes the plot of a search.
func (f searchFlags) plot(r convert.Result) error {
	if f.svg == "" || r.Search == nil {
		return nil
	}
	return cli.WriteFile(f.svg, func(w io.Writer) error { return r.Search.Plot(w, r.Name.String()) })
}
