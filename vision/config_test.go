package vision

import (
	"errors"
	"strings"
	"testing"
)

func TestConfigured(t *testing.T) {
	p := New(16, 2, 2)
	for _, test := range []struct {
		name, config string
		want         Processor
	}{
		{"nothing", `{}`, p},
		{"size", `{"size": {"shortest_edge": 100, "longest_edge": 200}}`, with(p, 100, 200)},
		{"old names win",
			`{"size": {"shortest_edge": 100, "longest_edge": 200}, "min_pixels": 30, "max_pixels": 40}`, with(p, 30, 40)},
		{"not positive", `{"size": {"shortest_edge": 0, "longest_edge": -1}, "min_pixels": null, "patch_size": 0}`, p},
		{"the tower's own sizes",
			`{"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "resample": 3, "do_resize": true}`, p},
		{"mean of two values", `{"image_mean": [0.1, 0.2]}`, p},
	} {
		if got, err := p.Configured([]byte(test.config)); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	got, err := p.Configured([]byte(`{"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 3], "rescale_factor": 0.5}`))
	if err != nil || got.Mean != [3]float64{0.1, 0.2, 0.3} || got.Std != [3]float64{1, 2, 3} || got.Scale != 0.5 {
		t.Errorf("mean, std and scale: %+v, %v", got, err)
	}
}

func with(p Processor, low, high int) Processor {
	p.MinPixels, p.MaxPixels = low, high
	return p
}

func TestConfiguredRefuses(t *testing.T) {
	for _, test := range []struct{ config, want string }{
		{`{`, "the JSON ends too early"},
		{`[]`, "a JSON array, want an object"},
		{`{"patch_size": "16"}`, "patch_size: a JSON string, want an integer"},
		{`{"patch_size": 14}`, "patch_size is 14, the vision tower has 16"},
		{`{"merge_size": 3}`, "merge_size is 3"},
		{`{"min_pixels": NaN}`, "min_pixels: a JSON object, want an integer"},
		{`{"min_pixels": 1e9}`, "min_pixels"},
		{`{"min_pixels": 200, "max_pixels": 100}`, "(200 pixels) exceeds the largest (100 pixels)"},
		{`{"image_std": [1, 0, 1]}`, "image_std has a zero"},
		{`{"resample": 2}`, "resample is 2"},
		{`{"do_normalize": false}`, "do_normalize is false"},
	} {
		if _, err := New(16, 2, 2).Configured([]byte(test.config)); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.config, err)
		}
	}
}

// Settings come from either file, the new one first. An error names the file.
func TestConfiguredBy(t *testing.T) {
	const old, part = "preprocessor_config.json", "processor_config.json"
	for _, test := range []struct {
		files  map[string]string
		limit  int
		failed string
	}{
		{nil, New(16, 2, 2).MaxPixels, ""},
		{map[string]string{old: `{"max_pixels": 70000, "unknown": NaN}`}, 70000, ""},
		{map[string]string{old: `{"max_pixels": 70000}`, part: `{"image_processor": {"max_pixels": 80000}}`}, 80000, ""},
		{map[string]string{old: `{"max_pixels": 70000}`, part: `{"processor_class": "P", "x": -Infinity}`}, 70000, ""},
		{map[string]string{old: `{"max_pixels": "many"}`}, 0, old + ": bad preprocessor configuration: max_pixels: a JSON"},
		{map[string]string{part: `{"image_processor": {"patch_size": 14}}`}, 0, part + ": patch_size is 14"},
		{map[string]string{part: `[1]`}, 0, part + ": bad preprocessor configuration: a JSON array, want an object"},
	} {
		p, err := New(16, 2, 2).ConfiguredBy(func(name string) ([]byte, error) {
			if text, ok := test.files[name]; ok {
				return []byte(text), nil
			}
			return nil, nil
		})
		if test.failed != "" {
			if !errors.Is(err, ErrConfig) || !strings.HasPrefix(err.Error(), test.failed) {
				t.Errorf("%v: %v, want %s", test.files, err, test.failed)
			}
		} else if err != nil || p.MaxPixels != test.limit {
			t.Errorf("%v: %d, %v, want %d", test.files, p.MaxPixels, err, test.limit)
		}
	}
}
