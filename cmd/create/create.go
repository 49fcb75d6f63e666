package create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/search"
	"github.com/ingotml/ingot/internal/limits/bytesize"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/spf13/cobra"
)

// defaultModelfile is the Modelfile that create follows without arguments that say otherwise.
const defaultModelfile = "Modelfile"

// dryRunMemory is the memory for the headers of 200,000 tensors, the most that a published checkpoint has.
const dryRunMemory = 256 << 20

func createCommand(a *cli.App) *cobra.Command {
	var file string
	var o createOptions
	c := &cobra.Command{
		Use:   "create NAME [SOURCE]",
		Short: "Make a model image from a checkpoint",
		Long: `Make a model image from a checkpoint and store it.

SOURCE is a checkpoint folder, a GGUF file, an image in a registry (docs/images.md lists the programs whose
images are read), or a repository of a hub: hf.co/ORG/REPO[@REVISION], or modelscope.cn/ORG/REPO; :FILE or
:TYPE after it names a GGUF file. It is imported as it is; without SOURCE, follow a Modelfile. FROM and DRAFT
name such a source or a model of the store. To resume an interrupted create, run it again.

A repository is read over the network, one tensor after the other, and not stored. Set HF_TOKEN to a token
for private and gated repositories, and HF_ENDPOINT to use a mirror.

With --push, NAME names a registry, and each tensor is uploaded while others are converted. With --no-keep,
nothing stays in the store, so the model may be larger than the disk.

Tensors of a GGUF file keep their codes where a format has them (docs/gguf.md lists the types).

Commands of a Modelfile: FROM, ADAPTER, DRAFT, TEMPLATE, SYSTEM, MESSAGE, PARAMETER, LICENSE, PARSER,
RENDERER, REQUIRES.

Parameters of a Modelfile:
` + cli.ParameterHelp() + `
Types: int2, int3, int4, int5, int6 and int8 in groups of 64, or of 32 or 128 as in int4-g32; mxfp4,
mxfp8, nvfp4; bf16, f16, f32. Each architecture keeps some tensors at a higher precision; --dry-run lists
them with the reasons; the rules have versions (--rule-set). Your rules come first: the last matching rule
wins. The type "source" keeps a tensor unchanged; -q source is the same as none.

Without a type, --target-size searches the types that diverge least from the source at a size: bits per
weight (4.5bpw), bytes of tensors (5GB), or what runs in memory (fit; --for and --context say where and with
how many tokens). --max-kl without a type searches the smallest model within that mean KL divergence. A
search runs the model some dozens of times over a short text and prints what it found. The image holds its
types as a recipe: "ingot show NAME --provenance --json" prints it.

--max-kl also attaches the divergence that was measured to the image, as a certificate, signed with --key;
see "ingot verify --help".

--as TYPE reads the checkpoint as one of TYPE, whatever its config.json declares, with all checks. The
image declares TYPE. Equal tensors do not make equal models: compare the logits with those of the model's
own code (verify --reference).

` + terminal.Fill("Model types: "+strings.Join(arch.Types(), ", ")+".", 104),
		Example: `  ingot create mymodel ./checkpoint
  ingot create mymodel hf.co/Qwen/Qwen3-0.6B -q int4
  ingot create ghcr.io/me/qwen3:int4 hf.co/Qwen/Qwen3-0.6B -q int4 \
    --push --no-keep
  ingot create mymodel ./checkpoint -q int4 \
    --quantize-rule '*.down_proj.weight=int8'
  ingot create mymodel ./checkpoint --target-size 4.5bpw
  ingot create mymodel ./model-Q4_K_M.gguf
  ingot create mymodel hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M
  ingot create mymodel ghcr.io/me/modelkit:v1 -q int4
  ingot create mymodel ./my-llama-variant --as llama
  ingot create mymodel -f ./Modelfile --dry-run`,
		Args: cli.Between(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkNamed(c, args); err != nil {
				return err
			}
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 && c.Flags().Changed("file") {
				return cli.Usagef("a source and --file cannot be combined")
			}
			var from *modelfile.File
			options := convert.Options{Version: cli.Version}
			if len(args) == 2 {
				from = &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: args[1]}}}
			} else if from, err = readModelfile(file, &options); err != nil {
				return err
			}
			if options.Precision, err = o.precision(a); err != nil {
				return err
			}
			if err := o.checkPush(name); err != nil {
				return err
			}
			return create(c.Context(), a, name, from, options, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "file", "f", defaultModelfile, "Modelfile to follow")
	f.StringVarP(&o.quantize, "quantize", "q", "", "`type` of the weights (default the source's)")
	o.flags(c)
	o.pushFlags(c)
	return c
}

// checkNamed returns an error if the only argument is a source, whose name was forgotten.
func checkNamed(c *cobra.Command, args []string) error {
	if len(args) > 1 || c.Flags().Changed("file") {
		return nil
	}
	if _, err := os.Stat(args[0]); err != nil {
		return nil
	}
	if _, err := os.Stat(defaultModelfile); err == nil {
		return nil
	}
	return cli.Usagef("%s is a source, and the model has no name: use `ingot create NAME %s`", args[0], args[0])
}

// createOptions are the flags that create and quantize share.
type createOptions struct {
	quantize, draft, recipe, memory string
	ruleSet, calibration            string
	equalize                        bool
	rules                           []string
	maxKL                           float64
	qualityText, key                string
	calibrationTexts                []string
	uniform, dryRun, json, hash     bool
	exact, anyLinks                 bool
	as                              string
	hub                             transfer.HubFlags
	search                          searchFlags
	push, noKeep, noReferrers       bool
	transfer                        transfer.Flags
}

func (o *createOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.rules, "quantize-rule", nil, "`GLOB=TYPE`: type of tensors by name (repeatable)")
	f.StringVar(&o.ruleSet, "rule-set", "", "precision `rules`: rules-1 or rules-2 (default rules-2)")
	f.StringVar(&o.recipe, "recipe", "", "JSON `file` with types and rules; flags override it")
	f.StringVar(&o.calibration, "calibration", convert.NoCalibration, "statistics for codes: none, auto or `FILE`")
	f.BoolVar(&o.equalize, "equalize", false, "scale channels by the statistics first")
	f.BoolVar(&o.uniform, "uniform", false, "quantize to one type, without higher-precision tensors")
	f.BoolVar(&o.exact, "exact", false, "keep a GGUF file's values exactly, as float32")
	f.BoolVar(&o.anyLinks, "follow-links", false, "read files that links of a folder name elsewhere")
	f.StringVar(&o.as, "as", "", "model `type` to read the checkpoint as")
	f.StringVar(&o.draft, "quantize-draft", "", "`type` of the draft model's weights")
	f.StringVar(&o.draft, "draft-quantize", "", "same as --quantize-draft")
	_ = f.MarkHidden("draft-quantize")
	f.StringVar(&o.memory, "max-memory", "1GiB", "memory limit, such as 512MiB")
	f.Float64Var(&o.maxKL, maxKLFlag, 0, "reject the result if its mean `KL` exceeds this, or search")
	f.StringVar(&o.qualityText, "quality-text", "", "text `file` for --"+maxKLFlag+" (default a built-in text)")
	f.StringVar(&o.key, "key", "", "PEM `file` with a private key for --"+maxKLFlag+"'s certificate")
	f.StringArrayVar(&o.calibrationTexts, "calibration-text", nil,
		"text `file` of the calibration, for the certificate")
	f.BoolVar(&o.hash, "hash-files", false, "record checksums of source files; reads them twice")
	o.hub.Add(f)
	o.transfer.AddUpload(c)
	o.search.add(c)
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and write nothing")
	f.BoolVar(&o.json, "json", false, "print the result or plan as JSON, progress as JSON lines")
}

// create executes a Modelfile, or prints the plan.
func create(ctx context.Context, a *cli.App, name manifest.Name, from *modelfile.File, options convert.Options,
	o createOptions) error {
	var err error
	if options.Memory, err = bytesize.Parse(o.memory); err != nil {
		return cli.Usagef("--max-memory: %v", err)
	}
	if o.as != "" {
		if err := arch.CheckType(o.as); err != nil {
			return cli.Usagef("--as: %v", err)
		}
	}
	options.HashFiles, options.Exact, options.AnyLinks, options.As = o.hash, o.exact, o.anyLinks, o.as
	options.Calibration, options.Equalize = o.calibration, o.equalize
	if o.equalize && o.calibration == convert.NoCalibration {
		return cli.Usagef("--equalize requires --calibration: channels are scaled by statistics")
	}
	if err := o.checkSearch(options.Precision); err != nil {
		return err
	}
	o.hub.Strict, o.hub.Wait = o.transfer.Strict, o.transfer.SettingFlags
	if o.dryRun {
		limitMemory(dryRunMemory)
		options.Remote = transfer.Hub(a, transfer.HubFlags{Strict: o.hub.Strict, Wait: o.hub.Wait}, options.Memory)
		plan, err := convert.DryRun(ctx, cli.ExistingStore, from, options)
		if err != nil {
			return err
		}
		return printPlan(a, plan, o.json)
	}
	limitMemory(options.Memory)
	options.Remote = transfer.Hub(a, o.hub, options.Memory)
	from, done, err := pullSources(ctx, a, from, &options, o)
	if err != nil {
		return err
	}
	result, check, err := build(ctx, a, name, from, options, o)
	if err != nil {
		return err
	}
	done()
	if err := o.search.plot(result); err != nil {
		return err
	}
	if o.json {
		return a.PrintJSON(createJSON{result.Name.String(), result.Digest.String(), result.Tensors, result.Bytes,
			result.Reused, result.Resumed, check.found(), check.certified(), result.Search})
	}
	if err := printSearch(a, result.Search); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s@%s\n", result.Name, result.Digest)
	return err
}

// build makes an image and shows progress. It returns the check of its divergence, nil if that was not measured.
func build(ctx context.Context, a *cli.App, name manifest.Name, from *modelfile.File, options convert.Options,
	o createOptions) (convert.Result, *qualityCheck, error) {
	store, err := a.OpenStore()
	if err != nil {
		return convert.Result{}, nil, err
	}
	check, err := newQualityCheck(ctx, a, store, name, o)
	if err != nil {
		return convert.Result{}, nil, err
	}
	defer check.close()
	options.Accept = check.accept()
	if o.searches(options.Precision) {
		closeSearch, err := searchTypes(ctx, a, store, name, from, &options, o, check)
		if err != nil {
			return convert.Result{}, nil, err
		}
		defer closeSearch()
	}
	if err := pushOptions(a, &options, store, name, o); err != nil {
		return convert.Result{}, nil, err
	}
	result, err := models.Convert(ctx, a, store, name, from, options, o.json)
	return result, check, err
}

type createJSON struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	Reused  int64  `json:"reused_bytes"`
	Resumed int64  `json:"resumed_bytes"`

	MeanKL      *float64      `json:"mean_kl,omitempty"`     // set with --max-kl
	Certificate string        `json:"certificate,omitempty"` // likewise: digest of the attestation's manifest
	Search      *search.Found `json:"search,omitempty"`      // set with --target-size, and --max-kl without a type
}

func readModelfile(path string, o *convert.Options) (*modelfile.File, error) {
	open := os.Open
	if path == defaultModelfile { // found, not named: a file that is named may be a pipe
		open = place.Open
	}
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist; name a checkpoint folder, or a Modelfile with -f", path)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, modelfile.MaxSize+1))
	if err != nil {
		return nil, err
	}
	o.Dir = filepath.Dir(path)
	return modelfile.Parse(path, text)
}
