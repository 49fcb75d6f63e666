package verify

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/calibrate"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/verify"
	"github.com/spf13/cobra"
)

// longTokens is how many tokens verify --kv-type reads if no number is given. A token of the built-in texts has fewer
// than bytesPerToken bytes.
const (
	longTokens    = 32 << 10
	bytesPerToken = 8
)

// kvJSON is the output of verify --kv-type.
type kvJSON struct {
	Model  string       `json:"model"`
	Text   string       `json:"text_sha256"`
	Tokens int          `json:"tokens"` // of the sequence
	State  int64        `json:"state"`  // bytes of it with keys and values as computed
	Types  []kvTypeJSON `json:"types"`
}

type kvTypeJSON struct {
	Type  string `json:"type"`
	State int64  `json:"state"` // bytes
	quality.Report
	Depths []kvDepthJSON `json:"by_context"`
}

// kvDepthJSON holds the figures of positions with a range of tokens before them.
type kvDepthJSON struct {
	From   int              `json:"from"` // tokens
	To     int              `json:"to"`
	MeanKL quality.Estimate `json:"mean_kl"`
	Top1   quality.Estimate `json:"top1"`
}

// measuresKV reports whether the flags ask for the cost of KV types.
func (o verifyOptions) measuresKV() bool {
	return o.against == "" && o.reference == "" && len(o.images) == 0 && o.kv != "" && o.kv != "auto"
}

// verifyKV measures what quantized keys and values cost: the same weights over one long sequence.
func verifyKV(a *cli.App, c *cobra.Command, name string, o verifyOptions) error {
	var types []runtime.KVType
	for s := range strings.SplitSeq(string(o.kv), ",") {
		t, err := engines.KVFlag(strings.TrimSpace(s)).Value()
		if err != nil {
			return err
		}
		if t == runtime.KVPlain {
			return cli.Usagef("--kv-type %s: name quantized types, such as q8,q4: they are compared with auto", o.kv)
		}
		types = append(types, t)
	}
	if o.tokens <= 0 {
		return cli.Usagef("--tokens %d must be positive", o.tokens)
	}
	text := ""
	if o.text != "" {
		var err error
		if text, err = input.Text(o.text); err != nil {
			return err
		}
	}
	ctx := c.Context()
	st, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	if err := models.CheckRequires(st, entry); err != nil {
		return err
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	engine, err := batch.Open(ctx, thread, st, entry, runtime.Options{Float32: o.float32})
	if err != nil {
		return err
	}
	defer engine.Close()
	p := engine.Model().Processor
	if text == "" {
		text = calibrate.Sample(bytesPerToken * min(o.tokens, p.Context()))
	}
	bar := cli.TokenProgress{Progress: a.Progress(false), Doing: "comparing"}
	rows, err := verify.KVTypes(ctx, engine.Model(), types, text, o.tokens, bar.Set)
	bar.End()
	if err != nil {
		return err
	}
	n := len(rows[0]) + 1
	out := kvJSON{Model: entry.Name.String(), Text: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Tokens: n,
		State: p.StateBytes(n, o.float32, runtime.KVPlain)}
	for i, t := range types {
		out.Types = append(out.Types, kvTypeJSON{string(t), p.StateBytes(n, o.float32, t), quality.Summarize(rows[i]),
			depths(rows[i])})
	}
	return printKV(a, out, c, o)
}

// depths summarizes the rows of a sequence by the number of tokens before them: up to 1024, and doubling.
func depths(rows []quality.Row) (list []kvDepthJSON) {
	for from, to := 0, 1024; from < len(rows); from, to = to, 2*to {
		r := quality.Summarize(rows[from:min(to, len(rows))])
		list = append(list, kvDepthJSON{from, min(to, len(rows)), r.MeanKL, r.Top1})
	}
	return list
}

func printKV(a *cli.App, out kvJSON, c *cobra.Command, o verifyOptions) error {
	ok := true
	for _, t := range out.Types {
		ok = ok && (!c.Flags().Changed("max-kl") || t.MeanKL.Value <= o.maxKL) &&
			(!c.Flags().Changed("min-top1") || t.Top1.Value >= o.minTop1)
	}
	if o.json {
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	} else if err := printKVTable(a, out); err != nil {
		return err
	}
	if !ok {
		return cli.ErrFailed
	}
	return nil
}

func printKVTable(a *cli.App, out kvJSON) error {
	w := cli.NewTable(a.Out)
	w.Row("KV TYPE", "CONTEXT", "STATE", "MEAN KL", "99 %", "SAME TOP TOKEN", "FLIPS")
	w.Row("auto", fmt.Sprintf("0-%d", out.Tokens), cli.Size(out.State), "", "", "", "")
	estimate := func(e quality.Estimate, scale float64, format string) string {
		return fmt.Sprintf(format+" +- %.2g", scale*e.Value, scale*e.Error)
	}
	for _, t := range out.Types {
		w.Row(t.Type, fmt.Sprintf("0-%d", out.Tokens), cli.Size(t.State), estimate(t.MeanKL, 1, "%.3g"),
			fmt.Sprintf("%.3g", t.KL99), estimate(t.Top1, 100, "%.2f")+" %", estimate(t.Flips, 100, "%.2f")+" %")
		for _, d := range t.Depths {
			w.Row("", fmt.Sprintf("%d-%d", d.From, d.To), "", estimate(d.MeanKL, 1, "%.3g"), "",
				estimate(d.Top1, 100, "%.2f")+" %", "")
		}
	}
	return w.Flush()
}
