package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/verify"
	"github.com/spf13/cobra"
)

func verifyCommand(a *cli.App) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Verify a model's blobs, outputs or signature",
		Long: `Verify a model in one of five ways.

By default, check every blob's digest, every tensor's name, shape and type, and that the model and its
draft model load and compute finite logits.

With --reference, run the tokens of a safetensors file through the model and compare the logits. The file
holds tokens int32 [T] and logits float32 [R, V] of another implementation, and optionally its greedy
continuation, greedy int32 [N]. For each run of image tokens, give the picture with --image, in order.
The model computes in the type of its weights, and --float32 in float32. The limits are 0.001 nats and 99 %
equal top tokens, or 0.005 nats and 95 % in bfloat16, whose rounding moves the logits.

With --against, compare the model with another one that has the same tokenizer, usually the one that it
was quantized from; that model may be hf.co/ORG/REPO[@REVISION], which is imported under this name if the
store lacks it. The models read --text or a built-in text; verify prints the perplexity of both, the KL
divergence, and how often they agree on the most likely token. The scores of the other model are cached in
the store, up to 4 GiB; "ingot prune" removes them. --svg plots the distribution of the
divergence. The command fails only if --max-kl or --min-top1 is given and not met.

With --certify, --against also attaches its result to the model as a certificate: an in-toto statement with
the figures and the digests of both models, of the text and of the calibration text. --key FILE, then a
private key, signs it. A text that shares 13 words in a row with the calibration text is refused. "ingot show
--certificates" prints it, "ingot push" pushes it, and "ingot pull --max-kl" requires it.

With --kv-type q8,q4 and without --against, measure what quantized keys and values cost: the same weights
read a sequence of --tokens tokens, or of the model's context, with each type, and are compared with
themselves with the default type. The text is --text, or the built-in one of calibrations.

With --key, check that the holder of the key signed the model (see ` + "`ingot sign --help`" + `), and every blob's
digest. This needs no engine. The signature is looked up in the store, and then in the registry of NAME.
It must be for NAME, unless NAME has no host or --signed-identity sets another rule; ` + "`ingot pull --help`" + `
lists the rules.`,
		Example: `  ingot verify mymodel
  ingot verify mymodel:int4 --against mymodel \
    --text wiki.test.raw --svg int4.svg
  ingot verify mymodel --kv-type q8,q4
  ingot verify mymodel:int4 --against mymodel --certify --key model.key`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.certify && o.against == "" {
				return cli.Usagef("--certify requires --against, which names the model to compare with")
			}
			if len(o.calibrationTexts) > 0 && !o.certify {
				return cli.Usagef("--calibration-text requires --certify")
			}
			if c.Flags().Changed("key") && !o.certify {
				return verifySignature(a, c, args[0], o)
			}
			if o.identity.Rule != "" {
				return cli.Usagef("--signed-identity requires --key FILE: otherwise no signature is checked")
			}
			if o.against != "" {
				return verifyAgainst(a, c, args[0], o)
			}
			if o.svg != "" || o.text != "" && !o.measuresKV() {
				return cli.Usagef("--text and --svg require --against, which names the model to compare with")
			}
			if o.measuresKV() {
				return verifyKV(a, c, args[0], o)
			}
			if c.Flags().Changed("tokens") {
				return cli.Usagef("--tokens requires --kv-type, whose cost is measured over so many")
			}
			return verifyModel(a, c, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.reference, "reference", "", "safetensors `file` with reference tokens and logits")
	f.Float64Var(&o.maxKL, "max-kl", 0, "most mean `KL` in nats (--reference: by compute type)")
	f.Float64Var(&o.minTop1, "min-top1", 0, "least `share` of equal top tokens (likewise)")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	f.StringArrayVar(&o.images, "image", nil, "picture `file` for the reference's tokens (repeatable)")
	f.StringVar(&o.against, "against", "", "`model` to compare with")
	f.StringVar(&o.text, "text", "", "text `file` for --against (default a built-in text)")
	f.StringVar(&o.svg, "svg", "", "`file` for a plot of the divergence of --against")
	f.BoolVar(&o.certify, "certify", false, "attach the result of --against as a certificate")
	f.StringArrayVar(&o.calibrationTexts, "calibration-text", nil,
		"text `file` of the calibration, for --certify (repeatable)")
	f.StringVar(&o.key, "key", "", "PEM `file` with a public key: check the signature instead")
	o.identity.Add(c)
	o.transfer.AddConnection(c)
	o.kv.Add(c)
	f.Lookup("kv-type").Usage = "KV cache `type`; alone, types to measure: q8,q4"
	f.IntVar(&o.tokens, "tokens", longTokens, "most `tokens` of the sequence for --kv-type")
	o.cpu.Add(c)
	f.BoolVar(&o.yes, "yes", false, "import or pull a missing --against model without asking")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type verifyOptions struct {
	reference      string
	maxKL, minTop1 float64
	float32, json  bool
	images         []string

	against, text, svg string

	certify          bool
	calibrationTexts []string
	tokens           int

	kv       engines.KVFlag
	cpu      engines.CPUFlags
	key      string
	identity signing.IdentityFlag
	transfer transfer.Flags
	yes      bool
}

func verifyModel(a *cli.App, c *cobra.Command, name string, o verifyOptions) error {
	ctx := c.Context()
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	if len(o.images) > 0 && o.reference == "" {
		return cli.Usagef("--image requires --reference, whose tokens mark where the pictures are")
	}
	pictures, err := input.Pictures(o.images)
	if err != nil {
		return err
	}
	var ref *quality.Reference
	if o.reference != "" {
		if ref, err = quality.ReadReference(o.reference); err != nil {
			return err
		}
	}
	store, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	if err := store.CheckPresent(entry, false); err != nil {
		return err
	}
	if err := store.CheckPresent(entry, true); err != nil {
		a.Note("note: %v: verified without the draft model", err)
		entry.Image.Layers = slices.DeleteFunc(entry.Image.Layers, manifest.Layer.Draft)
	}
	if err := models.CheckRequires(store, entry); err != nil {
		return err
	}
	var checked verify.Stats
	if ref == nil {
		if checked, err = verify.Image(ctx, store, entry); err != nil {
			return err
		}
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	options := runtime.Options{Float32: o.float32, KV: kv}
	model, err := batch.Open(ctx, thread, store, entry, options)
	if err != nil {
		return err
	}
	defer model.Close()
	if ref == nil {
		drafted, err := verify.ProbeDraft(ctx, model.Model(), store, entry, options)
		if err != nil {
			return err
		}
		return verifyAlone(ctx, a, model, checked, drafted, o)
	}
	limits := verify.LimitsFor(model.Model().Weights.DType)
	if !c.Flags().Changed("max-kl") {
		o.maxKL = limits.MaxKL
	}
	if !c.Flags().Changed("min-top1") {
		o.minTop1 = limits.MinTop1
	}
	return verifyReference(ctx, a, model, ref, pictures, o)
}

type aloneJSON struct {
	Blobs   int   `json:"blobs"`
	Bytes   int64 `json:"bytes"`
	Tensors int   `json:"tensors"`
	Tokens  int   `json:"tokens"`
	Drafted int   `json:"drafted,omitempty"`
	OK      bool  `json:"ok"`
}

func verifyAlone(
	ctx context.Context, a *cli.App, model *batch.Engine, s verify.Stats, drafted int, o verifyOptions,
) error {
	tokens, err := verify.Probe(ctx, model.Model())
	if err != nil {
		return err
	}
	if o.json {
		return a.PrintJSON(aloneJSON{s.Blobs, s.Bytes, s.Tensors, tokens, drafted, true})
	}
	what := "logits"
	if model.Processor().CheckHead() != nil {
		what = "hidden states"
	}
	text := fmt.Sprintf("ok: %d blobs (%s) match their digests, %d tensors match the architecture, "+
		"%s of %d tokens are finite",
		s.Blobs, cli.Size(s.Bytes), s.Tensors, what, tokens)
	if drafted > 0 {
		text += fmt.Sprintf(", and so are those of %d drafted tokens", drafted)
	}
	_, err = fmt.Fprintln(a.Out, text)
	return err
}

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

func verifyReference(
	ctx context.Context, a *cli.App, model *batch.Engine, ref *quality.Reference,
	pictures []runtime.Picture, o verifyOptions,
) error {
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
