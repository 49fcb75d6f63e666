package quality

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Size of the plot in its own units, and position of its axes.
const (
	plotWidth, plotHeight = 720, 420
	left, right           = 70, 700
	upper, lower          = 76, 360
)

// Plot writes an SVG of the KL divergence's distribution: on a logarithmic scale, the divergence that a share of the
// positions does not exceed, with the mean, median and 99th percentile. It adapts to light and dark pages.
func Plot(w io.Writer, title string, rows []Row) error {
	r := Summarize(rows)
	var kl []float64
	for _, row := range rows {
		kl = append(kl, row.KL)
	}
	slices.Sort(kl)
	low, high := decades(kl)
	x := func(share float64) float64 { return left + share*(right-left) }
	y := func(v float64) float64 {
		at := (math.Log10(min(max(v, low), high)) - math.Log10(low)) / (math.Log10(high) - math.Log10(low))
		return lower - at*(lower-upper)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" `+
		`font-family="system-ui, sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	b.WriteString(`<style>.back{fill:#fff}text{fill:#1f2328}.grid{stroke:#d8dee4}.line{fill:none;stroke:#0969da;` +
		`stroke-width:2}.mark{stroke:#bc4c00;stroke-dasharray:4 3}.note{fill:#bc4c00}` +
		`@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#e6edf3}.grid{stroke:#30363d}` +
		`.line{stroke:#4493f8}.mark{stroke:#f0883e}.note{fill:#f0883e}}</style>` + "\n")
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="28" font-size="15" font-weight="600">%s</text>`+"\n", left, escape(title))
	fmt.Fprintf(&b,
		`<text x="%d" y="50">perplexity %.4g +- %.2g, base %.4g +- %.2g; same top token %.2f %% of %d</text>`+"\n",
		left, r.Perplexity.Value, r.Perplexity.Error,
		r.BasePerplexity.Value, r.BasePerplexity.Error, 100*r.Top1.Value, r.Tokens)
	for v := low; v <= high*1.001; v *= 10 {
		fmt.Fprintf(&b,
			`<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%.0e</text>`+"\n",
			left, right, y(v), y(v), left-8, y(v)+4, v)
	}
	for share := 0.0; share <= 1; share += 0.25 {
		fmt.Fprintf(&b,
			`<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+
				`<text x="%.1f" y="%d" text-anchor="middle">%.0f %%</text>`+"\n",
			x(share), x(share), upper, lower, x(share), lower+18, 100*share)
	}
	fmt.Fprintf(&b,
		`<text x="%d" y="%d" text-anchor="middle">share of tokens with a divergence of at most this many nats</text>`+"\n",
		(left+right)/2, lower+42)
	const points = 400
	b.WriteString(`<path class="line" d="`)
	for i := range points + 1 {
		share, step := float64(i)/points, "L"
		if i == 0 {
			step = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", step, x(share), y(Quantile(kl, share)))
	}
	b.WriteString(`"/>` + "\n")
	for _, m := range []struct {
		name   string
		value  float64
		at     int
		anchor string
	}{{"mean", r.MeanKL.Value, right - 6, "end"}, {"median", r.MedianKL, left + 6, "start"},
		{"99 %", r.KL99, left + 6, "start"}} {
		fmt.Fprintf(&b, `<line class="mark" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+"\n", left, right, y(m.value), y(m.value))
		fmt.Fprintf(&b, `<text class="note" x="%d" y="%.1f" text-anchor="%s">%s %.3g</text>`+"\n", m.at, y(m.value)-4,
			m.anchor, m.name, m.value)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// decades returns the powers of ten that enclose most values; the range covers at most eight decades.
func decades(sorted []float64) (low, high float64) {
	most := sorted[len(sorted)-1]
	if math.IsInf(most, 0) || most <= 0 {
		most = 1
	}
	high = math.Pow(10, math.Ceil(math.Log10(most)))
	low = high / 10
	for least := max(Quantile(sorted, 0.02), high/1e8); low > least; {
		low /= 10
	}
	return low, high
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
