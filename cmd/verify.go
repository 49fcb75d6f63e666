package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

func (a *app) verifyCmd() *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Check a model, alone or against a reference",
		Long: `Check a model.

Without a reference: every blob's digest, every tensor's name, shape and type, and that the model, and its draft if it
has one, load and compute finite scores. With one: its tokens run through the model, and the scores are compared. The
reference is a safetensors file with tokens int32 [T] and logits float32 [T, V] of another implementation, and perhaps
greedy int32 [N], its greedy continuation. Where the tokens have runs of image tokens,
--image gives the picture of each run, in order.

With --against: the scores of NAME are compared with those of another model that has the same tokens, mostly the one that it was quantized
from, over the tokens of --text or of a text of some pages: perplexity of both, divergence and how often the likeliest token is the same.
Every token has half a window of 512 before it. --svg draws how the divergence is spread. It fails only where --max-kl or --min-top1 is given.

With --key: that the holder of this key signed the model (see ` + "`ingot sign --help`" + `), and every blob's digest; nothing is run, and no
engine is needed. The signature is looked for in the store, then in the registry of NAME. It has to be for NAME, unless NAME has
no host or --signed-identity gives another rule; ` + "`ingot pull --help`" + ` lists the rules.`,
		Example: `  ingot verify mymodel
  ingot verify mymodel:int4 --against mymodel --text wiki.test.raw --svg int4.svg`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("key") {
				return a.verifySignature(c, args[0], o)
			}
			if o.identity.rule != "" {
				return usagef("--signed-identity needs --key FILE: the signature would not be checked")
			}
			if o.against != "" {
				return a.verifyAgainst(c, args[0], o)
			}
			if o.text != "" || o.svg != "" {
				return usagef("--text and --svg need --against, which names the model to compare with")
			}
			return a.verify(c, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.reference, "reference", "", "safetensors `file` with tokens and logits to compare with")
	f.Float64Var(&o.maxKL, "max-kl", 1e-3, "largest mean divergence that passes, in nats")
	f.Float64Var(&o.minTop1, "min-top1", 0.99, "smallest share of equal top scores that passes")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	f.StringArrayVar(&o.images, "image", nil, "picture `file` for the image tokens of the reference (repeatable)")
	f.StringVar(&o.against, "against", "", "`model` to compare the scores with")
	f.StringVar(&o.text, "text", "", "`file` with the text for --against")
	f.StringVar(&o.svg, "svg", "", "`file` for a drawing of what --against finds")
	f.StringVar(&o.key, "key", "", "public key `file` in PEM form: check the signature instead of a run")
	o.identity.add(c)
	o.transfer.addConnection(c)
	o.kv.add(c)
	o.cpu.add(c)
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type verifyOptions struct {
	reference      string
	maxKL, minTop1 float64
	float32, json  bool
	images         []string

	against, text, svg string

	kv       kvFlag
	cpu      cpuFlags
	key      string
	identity identityFlag
	transfer transferFlags
}

func (a *app) verify(c *cobra.Command, name string, o verifyOptions) error {
	ctx := c.Context()
	kv, err := o.kv.value()
	if err != nil {
		return err
	}
	if len(o.images) > 0 && o.reference == "" {
		return usagef("--image needs --reference, whose tokens say where pictures are")
	}
	pictures, err := readPictures(o.images)
	if err != nil {
		return err
	}
	var ref *runtime.Reference
	if o.reference != "" {
		if ref, err = runtime.ReadReference(o.reference); err != nil {
			return err
		}
	}
	store, entry, err := resolve(c, name)
	if err != nil {
		return err
	}
	if err := store.CheckPresent(entry, false); err != nil {
		return err
	}
	if err := store.CheckPresent(entry, true); err != nil {
		a.note("note: %v: checked without its draft", err)
		entry.Image.Layers = slices.DeleteFunc(entry.Image.Layers, manifest.Layer.Draft)
	}
	if err := checkRequires(store, entry); err != nil {
		return err
	}
	var checked runtime.CheckStats
	if ref == nil {
		if checked, err = runtime.CheckImage(ctx, store, entry); err != nil {
			return err
		}
	}
	thread, err := a.openEngine(ctx, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	options := runtime.Options{Float32: o.float32, KV: kv}
	model, err := runtime.Load(ctx, thread, store, entry, options)
	if err != nil {
		return err
	}
	defer model.Close()
	if ref == nil {
		drafted, err := model.ProbeDraft(ctx, store, entry, options)
		if err != nil {
			return err
		}
		return a.verifyAlone(ctx, model, checked, drafted, o)
	}
	return a.verifyReference(ctx, model, ref, pictures, o)
}

type aloneJSON struct {
	Blobs   int   `json:"blobs"`
	Bytes   int64 `json:"bytes"`
	Tensors int   `json:"tensors"`
	Tokens  int   `json:"tokens"`
	Drafted int   `json:"drafted,omitempty"`
	OK      bool  `json:"ok"`
}

func (a *app) verifyAlone(ctx context.Context, model *runtime.Local, s runtime.CheckStats, drafted int, o verifyOptions) error {
	tokens, err := model.Probe(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(aloneJSON{s.Blobs, s.Bytes, s.Tensors, tokens, drafted, true})
	}
	text := fmt.Sprintf("ok: %d blobs (%s) match their digests, %d tensors fit the architecture, scores of %d tokens are finite",
		s.Blobs, size(s.Bytes), s.Tensors, tokens)
	if drafted > 0 {
		text += fmt.Sprintf(", so are those of %d drafts", drafted)
	}
	_, err = fmt.Fprintln(a.out, text)
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
}

func (a *app) verifyReference(ctx context.Context, model *runtime.Local, ref *runtime.Reference, pictures []runtime.Picture, o verifyOptions) error {
	r, greedy, err := model.Compare(ctx, ref, pictures...)
	if err != nil {
		return err
	}
	ok := r.MeanKL <= o.maxKL && r.Top1 >= o.minTop1
	if o.json {
		err = a.printJSON(referenceJSON{r.Tokens, r.MaxAbs, r.MeanAbs, r.MeanKL, r.Top1, greedy, ok})
	} else {
		err = a.printComparison(r, greedy, ok, o)
	}
	if err == nil && !ok {
		return errFailed
	}
	return err
}

func (a *app) printComparison(r runtime.Comparison, greedy *bool, ok bool, o verifyOptions) error {
	verdict := "ok"
	if !ok {
		verdict = "FAILED"
	}
	text := fmt.Sprintf("%s: %d tokens\n", verdict, r.Tokens)
	text += fmt.Sprintf("  largest difference  %.3g (%.3g standard deviations)\n", r.MaxAbs, r.MaxAbs/r.Scale)
	text += fmt.Sprintf("  mean difference     %.3g\n", r.MeanAbs)
	text += fmt.Sprintf("  mean divergence     %.3g nats (at most %.3g)\n", r.MeanKL, o.maxKL)
	text += fmt.Sprintf("  equal top scores    %.2f %% (at least %.2f %%)\n", 100*r.Top1, 100*o.minTop1)
	if greedy != nil {
		text += fmt.Sprintf("  greedy text equal   %v\n", *greedy)
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}
