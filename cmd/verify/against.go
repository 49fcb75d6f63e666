package verify

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/spf13/cobra"
)

// againstJSON is the output of --against.
type againstJSON struct {
	Model   string `json:"model"`
	Against string `json:"against"`
	Text    string `json:"text_sha256"`
	quality.Report
	Certificate string `json:"certificate,omitempty"` // digest of the attestation's manifest
	OK          bool   `json:"ok"`
}

// verifyAgainst compares a model with another one.
func verifyAgainst(a *cli.App, c *cobra.Command, name string, o verifyOptions) error {
	text, err := input.Text(o.text)
	if err != nil {
		return err
	}
	calibrated, err := input.Texts(o.calibrationTexts)
	if err != nil {
		return err
	}
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	ctx := c.Context()
	var key *sigstore.PrivateKey // nil does not sign
	if o.key != "" {
		if key, err = signing.PrivateKey(ctx, a, o.key); err != nil {
			return err
		}
	}
	store, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	if o.against, err = models.Ensure(ctx, a, o.against, o.yes, mlx.Available); err != nil {
		return err
	}
	_, base, err := models.Resolve(c, o.against)
	if err != nil {
		return err
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	bar := cli.TokenProgress{Progress: a.Progress(false), Doing: "comparing"}
	compared := models.Images(store, thread, runtime.Options{Float32: o.float32, KV: kv})
	rows, err := compared.Compare(ctx, entry, base, text, bar.Set)
	bar.End()
	if err != nil {
		return err
	}
	r := quality.Summarize(rows)
	if o.svg != "" {
		title := fmt.Sprintf("%s against %s", entry.Name, base.Name)
		if err := cli.WriteFile(o.svg, func(w io.Writer) error { return quality.Plot(w, title, rows) }); err != nil {
			return err
		}
	}
	ok := (!c.Flags().Changed("max-kl") || r.MeanKL.Value <= o.maxKL) &&
		(!c.Flags().Changed("min-top1") || r.Top1.Value >= o.minTop1)
	certified := ""
	if o.certify && ok {
		made := certify.Comparison{
			Program: "ingot " + cli.Version, Images: compared, Text: text, Report: r, Texts: calibrated, Key: key,
		}
		d, err := made.Stored(ctx, entry, base)
		if err != nil {
			return err
		}
		certified = d.Descriptor.Digest.String()
	}
	if o.json {
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		err = a.PrintJSON(againstJSON{entry.Name.String(), base.Name.String(), digest, r, certified, ok})
	} else if err = printReport(a, r, ok); err == nil && certified != "" {
		_, err = fmt.Fprintf(a.Out, "  %-24s%s\n", "certificate", certified)
	}
	if err == nil && !ok {
		return cli.ErrFailed
	}
	return err
}

func printReport(a *cli.App, r quality.Report, ok bool) error {
	status := "ok"
	if !ok {
		status = "FAILED"
	}
	if _, err := fmt.Fprintf(a.Out, "%s: %d tokens\n", status, r.Tokens); err != nil {
		return err
	}
	return view.PrintFigures(a, r)
}
