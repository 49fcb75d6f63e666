package certificate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

var image, base = digest.FromString("image"), digest.FromString("base")

func good() *Certificate {
	row := quality.Row{Base: 1, Other: 1.2, KL: 0.1, Top: true}
	flip := quality.Row{Base: 2, Other: 2.1, KL: 0.3, Flip: true}
	return &Certificate{
		Program: "ingot devel", Weights: digest.FromString("w"), Base: Image{base, digest.FromString("v")},
		Text:        TextOf("text"),
		Calibration: []Calibration{{digest.FromString("s"), digest.FromString("t")}},
		Options:     Options{Window: 512, Engine: "MLX"},
		Figures:     quality.Summarize([]quality.Row{row, row, flip, row}),
	}
}

func TestRoundTrip(t *testing.T) {
	b, err := good().Encode()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(b, image)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Encode()
	if err != nil || string(again) != string(b) {
		t.Errorf("%v: encoded again:\n%s\n%s", err, again, b)
	}
	if _, err := Parse(b, base); !errors.Is(err, ErrCertificate) {
		t.Errorf("about the base: %v", err)
	}
	for _, test := range []struct {
		maxKL float64
		base  digest.Digest
		want  string
	}{
		{0.2, "", ""}, {0.2, base, ""}, {0.15, "", ""}, {0.149, "", "exceeds"}, {0, "", "exceeds"},
		{0.2, image, "it compares with"},
	} {
		err := c.Meets(test.maxKL, test.base)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("at most %v from %q: %v, want %q", test.maxKL, test.base, err, test.want)
		}
	}
}

// What no comparison can have found is refused.
func TestParseRefuses(t *testing.T) {
	for name, change := range map[string]func(c *Certificate){
		"no base":                    func(c *Certificate) { c.Base.Digest = "" },
		"no weights":                 func(c *Certificate) { c.Weights = "sha256:12" },
		"no text":                    func(c *Certificate) { c.Text.Digest = "text" },
		"no statistics":              func(c *Certificate) { c.Calibration[0].Statistics = "" },
		"the calibration's text":     func(c *Certificate) { c.Calibration[0].Text = c.Text.Digest },
		"no tokens":                  func(c *Certificate) { c.Figures.Tokens = 0 },
		"a negative divergence":      func(c *Certificate) { c.Figures.MeanKL.Value = -0.1 },
		"a mean beyond the largest":  func(c *Certificate) { c.Figures.MeanKL.Value = 1 },
		"a median beyond 99 %":       func(c *Certificate) { c.Figures.MedianKL = 0.29999 },
		"a share of more than all":   func(c *Certificate) { c.Figures.Top1.Value = 1.1 },
		"more flips than other tops": func(c *Certificate) { c.Figures.Flips.Value = 0.26 },
		"another ratio":              func(c *Certificate) { c.Figures.PerplexityRatio.Value *= 1.01 },
		"another perplexity":         func(c *Certificate) { c.Figures.Perplexity.Value *= 0.99 },
		"a perplexity below 1":       func(c *Certificate) { c.Figures.BasePerplexity.Value = 0.5 },
		"a negative error":           func(c *Certificate) { c.Figures.Top1.Error = -1 },
	} {
		c := good()
		change(c)
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(b, image); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v, want ErrCertificate", name, err)
		}
		if _, err := c.Encode(); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s is encoded: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", "null", `{"figures":1}`, `{"base":{"digest":7}}`} {
		if _, err := Parse([]byte(text), image); !errors.Is(err, ErrCertificate) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckOverlap(t *testing.T) {
	const text = "One two three, four five six seven eight nine ten eleven: twelve thirteen fourteen fifteen."
	for name, test := range map[string]struct {
		seen string
		want bool
	}{
		"nothing":                       {"", false},
		"the same":                      {text, true},
		"other case and spaces":         {strings.ToUpper(strings.ReplaceAll(text, " ", "\n  ")), true},
		"13 words or signs":             {"a three, four five six seven eight nine ten eleven: twelve thirteen b", true},
		"12 words or signs":             {"a three, four five six seven eight nine ten eleven: twelve after b", false},
		"a whole short document":        {"six seven", true},
		"a short document, half a word": {"six sev", false},
		"the words in another order":    {"two one four three six five eight seven ten nine twelve eleven thirteen", false},
	} {
		err := CheckOverlap(text, []string{"something else", test.seen})
		if errors.Is(err, ErrOverlap) != test.want {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
