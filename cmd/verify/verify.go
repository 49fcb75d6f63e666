package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
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
			run, err := o.way(c)
			if err != nil {
				return err
			}
			return run(a, c, args[0], o)
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

// way is one of the ways to verify a model.
type way func(a *cli.App, c *cobra.Command, name string, o verifyOptions) error

// way returns the way that the flags choose, or what is wrong with them. The first row that applies decides.
func (o verifyOptions) way(c *cobra.Command) (way, error) {
	given := c.Flags().Changed
	signature := given("key") && !o.certify
	run := slices.IndexFunc(flagsOfRuns, given) // one that a signature cannot be combined with
	for _, row := range []struct {
		applies bool
		run     way
		wrong   string
	}{
		{o.certify && o.against == "", nil, "--certify requires --against, which names the model to compare with"},
		{len(o.calibrationTexts) > 0 && !o.certify, nil, "--calibration-text requires --certify"},
		{signature && run >= 0, nil, "--key checks a signature and --%s a run: verify them separately"},
		{signature, verifySignature, ""},
		{o.identity.Rule != "", nil, "--signed-identity requires --key FILE: otherwise no signature is checked"},
		{o.against != "" && (o.reference != "" || len(o.images) > 0), nil,
			"--against cannot be combined with --reference or --image: use one of them"},
		{o.against != "", verifyAgainst, ""},
		{o.svg != "" || o.text != "" && !o.measuresKV(), nil,
			"--text and --svg require --against, which names the model to compare with"},
		{o.measuresKV(), verifyKV, ""},
		{given("tokens"), nil, "--tokens requires --kv-type, whose cost is measured over --tokens tokens"},
		{len(o.images) > 0 && o.reference == "", nil,
			"--image requires --reference, whose tokens mark where the pictures are"},
		{o.reference != "", verifyReference, ""},
		{true, verifyAlone, ""},
	} {
		switch {
		case !row.applies:
		case row.run != nil:
			return row.run, nil
		case strings.Contains(row.wrong, "%s"):
			return nil, cli.Usagef(row.wrong, flagsOfRuns[run])
		default:
			return nil, cli.Usagef("%s", row.wrong)
		}
	}
	panic("the last row applies")
}

// resolve finds a model whose weights the store has. It leaves a draft model out of which blobs are missing.
func resolve(a *cli.App, c *cobra.Command, name string) (*store.Store, *store.Entry, error) {
	st, entry, err := models.Resolve(c, name)
	if err != nil {
		return nil, nil, err
	}
	if err := st.CheckPresent(entry, false); err != nil {
		return nil, nil, err
	}
	if err := st.CheckPresent(entry, true); err != nil {
		a.Note("note: %v: verified without the draft model", err)
		entry.Image.Layers = slices.DeleteFunc(entry.Image.Layers, manifest.Layer.Draft)
	}
	return st, entry, models.CheckRequires(st, entry)
}

// open opens a model. The caller closes it by the function that open returns.
func (o verifyOptions) open(
	ctx context.Context, a *cli.App, st *store.Store, entry *store.Entry, options runtime.Options,
) (*batch.Engine, func(), error) {
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return nil, nil, err
	}
	model, err := batch.Open(ctx, thread, st, entry, options)
	if err != nil {
		thread.Close()
		return nil, nil, err
	}
	return model, func() { _ = model.Close(); thread.Close() }, nil
}
