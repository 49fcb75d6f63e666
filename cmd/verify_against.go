package cmd

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/measure"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/spf13/cobra"
)

// maxText bounds the text of --against in bytes. A text of this size takes days.
const maxText = 64 << 20

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
func (a *app) verifyAgainst(c *cobra.Command, name string, o verifyOptions) error {
	if o.reference != "" || len(o.images) > 0 {
		return usagef("--against cannot be combined with --reference or --image: use one of them")
	}
	text, err := readText(o.text)
	if err != nil {
		return err
	}
	calibrated, err := readTexts(o.calibrationTexts)
	if err != nil {
		return err
	}
	kv, err := o.kv.value()
	if err != nil {
		return err
	}
	ctx := c.Context()
	var key *sigstore.PrivateKey // nil does not sign
	if o.key != "" {
		if key, err = a.privateKey(ctx, o.key); err != nil {
			return err
		}
	}
	store, entry, err := resolve(c, name)
	if err != nil {
		return err
	}
	if o.against, err = a.ensure(ctx, o.against, o.yes, mlx.Available); err != nil {
		return err
	}
	_, base, err := resolve(c, o.against)
	if err != nil {
		return err
	}
	thread, err := a.openEngine(ctx, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	bar := tokenProgress{a.createProgress(false), "comparing"}
	compared := images(store, thread, runtime.Options{Float32: o.float32, KV: kv})
	rows, err := compared.Compare(ctx, entry, base, text, bar.set)
	bar.end()
	if err != nil {
		return err
	}
	r := quality.Summarize(rows)
	if o.svg != "" {
		title := fmt.Sprintf("%s against %s", entry.Name, base.Name)
		if err := writeWhole(o.svg, func(w io.Writer) error { return quality.Plot(w, title, rows) }); err != nil {
			return err
		}
	}
	ok := (!c.Flags().Changed("max-kl") || r.MeanKL.Value <= o.maxKL) &&
		(!c.Flags().Changed("min-top1") || r.Top1.Value >= o.minTop1)
	certified := ""
	if o.certify && ok {
		made := certify.Comparison{
			Program: "ingot " + Version, Images: compared, Text: text, Report: r, Texts: calibrated, Key: key,
		}
		d, err := made.Stored(ctx, entry, base)
		if err != nil {
			return err
		}
		certified = d.Descriptor.Digest.String()
	}
	if o.json {
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		err = a.printJSON(againstJSON{entry.Name.String(), base.Name.String(), digest, r, certified, ok})
	} else if err = a.printReport(r, ok); err == nil && certified != "" {
		_, err = fmt.Fprintf(a.out, "  %-24s%s\n", "certificate", certified)
	}
	if err == nil && !ok {
		return errFailed
	}
	return err
}

// images returns what compares images of a store. A model that requires a later version of this program is refused.
func images(st *store.Store, thread *mlx.Thread, o runtime.Options) measure.Images {
	return measure.Images{Store: st, Thread: thread, Options: o,
		Check: func(e *store.Entry) error { return checkRequires(st, e) }}
}

// tokenProgress shows how many tokens were read.
type tokenProgress struct {
	*createProgress
	doing string
}

func (p tokenProgress) set(done, total int) {
	p.line(fmt.Sprintf("%s: %d of %d tokens", p.doing, done, total))
}

// readText reads the text of a comparison. An empty path means the built-in text.
func readText(path string) (string, error) {
	if path == "" {
		return quality.Text, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxText:
		return "", fmt.Errorf("%s is larger than %s; use a shorter text", path, size(maxText))
	case filekind.Of(b, int64(len(b))).Kind == filekind.Pointer:
		return "", fmt.Errorf("%s: %s", path, filekind.Of(b, int64(len(b))).Wrong())
	case !utf8.Valid(b):
		return "", fmt.Errorf("%s is not UTF-8 text; convert it first", path)
	}
	return string(b), nil
}

// readTexts reads texts of a calibration.
func readTexts(paths []string) (texts []string, err error) {
	for _, path := range paths {
		text, err := readText(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// writeWhole replaces a file that others may read.
func writeWhole(path string, write func(io.Writer) error) error {
	return atomicfile.Write(path, 0o644, func(f *os.File) error { return write(f) })
}

func (a *app) printReport(r quality.Report, ok bool) error {
	status := "ok"
	if !ok {
		status = "FAILED"
	}
	if _, err := fmt.Fprintf(a.out, "%s: %d tokens\n", status, r.Tokens); err != nil {
		return err
	}
	return a.printFigures(r)
}

func (a *app) printFigures(r quality.Report) error {
	text := ""
	for _, line := range []struct {
		name string
		e    quality.Estimate
		unit string
	}{
		{"perplexity", r.Perplexity, ""},
		{"base perplexity", r.BasePerplexity, ""},
		{"ratio", r.PerplexityRatio, ""},
		{"mean divergence", r.MeanKL, " nats"},
	} {
		text += fmt.Sprintf("  %-24s%.6g +- %.2g%s\n", line.name, line.e.Value, line.e.Error, line.unit)
	}
	text += fmt.Sprintf("  %-24s%.3g +- %.2g nats\n", "median divergence", r.MedianKL, r.MedianKLError)
	text += fmt.Sprintf("  %-24s%.3g +- %.2g nats\n", "99th percentile", r.KL99, r.KL99Error)
	text += fmt.Sprintf("  %-24s%.3g nats\n", "largest divergence", r.MaxKL)
	text += fmt.Sprintf("  %-24s%.2f +- %.2f %%\n", "same top token", 100*r.Top1.Value, 100*r.Top1.Error)
	text += fmt.Sprintf("  %-24s%.2f +- %.2f %%\n", "flips", 100*r.Flips.Value, 100*r.Flips.Error)
	_, err := fmt.Fprint(a.out, text)
	return err
}
