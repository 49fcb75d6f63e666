package search

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Size of the plot in its own units, and position of its axes.
const (
	plotWidth, plotHeight = 720, 420
	left, right           = 70, 700
	upper, lower          = 56, 360
)

// Plot writes an SVG of the trade-off: the divergence, on a logarithmic scale, over the bits of a weight. It adapts to
// light and dark pages.
func (f *Found) Plot(w io.Writer, title string) error {
	low, high, least, most := f.ranges()
	x := func(bits float64) float64 { return left + (bits-least)/(most-least)*(right-left) }
	y := func(kl float64) float64 {
		at := math.Log10(min(max(kl, low), high)/low) / math.Log10(high/low)
		return lower - at*(lower-upper)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" `+
		`font-family="system-ui, sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	b.WriteString(`<style>.back{fill:#fff}text{fill:#1f2328}.grid{stroke:#d8dee4}.line{fill:none;stroke:#0969da;` +
		`stroke-width:2}.mark{fill:#bc4c00}@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#e6edf3}` +
		`.grid{stroke:#30363d}.line{stroke:#4493f8}.mark{fill:#f0883e}}</style>` + "\n")
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="28" font-size="15" font-weight="600">%s</text>`+"\n", left, escape(title))
	for v := low; v <= high*1.001; v *= 10 {
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%.0e</text>`+"\n", left, right, y(v), y(v), left-8, y(v)+4, v)
	}
	for v := math.Ceil(least); v <= most; v++ {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+
			`<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x(v), x(v), upper, lower, x(v), lower+18, v)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">bits per weight; mean KL divergence in nats: `+
		`line predicted, dots measured</text>`+"\n", (left+right)/2, lower+42)
	b.WriteString(`<path class="line" d="`)
	verb := "M"
	for _, p := range f.Curve {
		if p.MeanKL == nil {
			fmt.Fprintf(&b, "%s%.1f %.1f", verb, x(p.Bits), y(p.Predicted))
			verb = "L"
		}
	}
	b.WriteString(`"/>` + "\n")
	for _, p := range f.Curve {
		if p.MeanKL == nil {
			continue
		}
		radius := 4
		if p.Chosen {
			radius = 7
		}
		fmt.Fprintf(&b, `<circle class="mark" cx="%.1f" cy="%.1f" r="%d"><title>%.4g nats at %.3f bits</title></circle>`+"\n",
			x(p.Bits), y(*p.MeanKL), radius, *p.MeanKL, p.Bits)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// ranges returns the powers of ten around all divergences, and the least and the most bits.
func (f *Found) ranges() (low, high, least, most float64) {
	smallest, largest := math.Inf(1), 0.0
	least = math.Inf(1)
	for _, p := range f.Curve {
		kl := p.Predicted
		if p.MeanKL != nil {
			kl = *p.MeanKL
		}
		if kl > 0 {
			smallest = min(smallest, kl)
		}
		largest = max(largest, kl)
		least, most = min(least, p.Bits), max(most, p.Bits)
	}
	if largest == 0 {
		return 0.1, 1, least, max(most, least+1)
	}
	high = math.Pow(10, math.Ceil(math.Log10(largest)))
	low = math.Pow(10, math.Floor(math.Log10(max(smallest, largest/1e6))))
	return min(low, high/10), high, least, max(most, least+0.1)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
