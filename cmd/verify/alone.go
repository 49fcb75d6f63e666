package verify

import (
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/verify"
	"github.com/spf13/cobra"
)

type aloneJSON struct {
	Blobs   int   `json:"blobs"`
	Bytes   int64 `json:"bytes"`
	Tensors int   `json:"tensors"`
	Tokens  int   `json:"tokens"`
	Drafted int   `json:"drafted,omitempty"`
	OK      bool  `json:"ok"`
}

// verifyAlone checks blobs and tensors, and that the model and its draft model compute finite logits.
func verifyAlone(a *cli.App, c *cobra.Command, name string, o verifyOptions) error {
	ctx := c.Context()
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	st, entry, err := resolve(a, c, name)
	if err != nil {
		return err
	}
	s, err := verify.Image(ctx, st, entry)
	if err != nil {
		return err
	}
	options := runtime.Options{Float32: o.float32, KV: kv}
	model, done, err := o.open(ctx, a, st, entry, options)
	if err != nil {
		return err
	}
	defer done()
	drafted, err := verify.ProbeDraft(ctx, model.Model(), st, entry, options)
	if err != nil {
		return err
	}
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
