package convert

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

func TestDraft(t *testing.T) {
	target := finiteWeights(tiny(t, strings.Replace(wideConfig, `"num_hidden_layers": 2`, `"num_hidden_layers": 4`, 1),
		1)).write(t, t.TempDir())
	small := finiteWeights(tiny(t, wideConfig, 2))
	draft := small.write(t, t.TempDir())
	store := openStore(t)
	alone := mustCreate(t, store, "alone", from(target), Options{})
	r := mustCreate(t, store, "pair", parsed(t, "FROM "+target+"\nDRAFT "+draft),
		Options{Precision: recipe.Precision{Draft: quantize.Int8}})
	img := mustResolve(t, store, "pair").Image
	if got := readLayer(t, store, img, manifest.KindFile, blob.DraftConfig); got != small.files[source.ConfigName] {
		t.Errorf("configuration %s", got)
	}
	if r.Reused == 0 || r.Tensors != alone.Tensors+21 {
		t.Errorf("%+v", r)
	}
	meta, have := arrays(t, store, img, "draft.model.layers.0.mlp.up_proj.weight")
	if meta[blob.MetaType] != "int8" || len(have) != 3 || have[1].Name != "draft.model.layers.0.mlp.up_proj.weight.scale" {
		t.Errorf("metadata %v, %d keys", meta, len(have))
	}
	if meta, _ := arrays(t, store, img, "model.layers.0.mlp.up_proj.weight"); meta != nil {
		t.Errorf("the target is quantized: %v", meta)
	}
	// An image's draft is kept. The target may be quantized separately, and the draft replaced.
	if again := mustCreate(t, store, "again", parsed(t, "FROM pair"), Options{}); again.Digest != r.Digest {
		t.Errorf("made from the image: %s, want %s", again.Digest, r.Digest)
	}
	mustCreate(t, store, "q", parsed(t, "FROM pair"), Options{Precision: recipe.Precision{Type: quantize.Int4}})
	if meta, _ := arrays(t, store, mustResolve(t, store, "q").Image,
		"draft.model.layers.0.mlp.up_proj.weight"); meta[blob.MetaType] != "int8" {
		t.Errorf("the draft became %v", meta)
	}
	mustCreate(t, store, "plain", parsed(t, "FROM pair\nDRAFT "+draft), Options{})
	if meta, _ := arrays(t, store, mustResolve(t, store, "plain").Image,
		"draft.model.layers.0.mlp.up_proj.weight"); meta != nil {
		t.Errorf("the draft is quantized: %v", meta)
	}
	// A model in the store may be the draft.
	mustCreate(t, store, "small", from(draft), Options{})
	if r := mustCreate(t, store, "named", parsed(t, "FROM alone\nDRAFT small"),
		Options{Precision: recipe.Precision{Draft: quantize.Int8}}); r.Digest != mustResolve(t, store, "pair").Digest {
		t.Errorf("from names: digest %s", r.Digest)
	}
}

func TestIncompatibleDraft(t *testing.T) {
	other := strings.Replace(tinyTokenizer, `"ab": 2`, `"ba": 2`, 1)
	for _, c := range []struct {
		name, config, tokenizer string
		kind                    error
		want                    string
	}{
		{
			"vocabulary", strings.Replace(wideConfig, `"vocab_size": 256`, `"vocab_size": 128`, 1), "", arch.ErrDraft,
			"vocabulary of 128",
		},
		{"tokenizer", wideConfig, other, source.ErrSource, `token 2 is "ba", not "ab"`},
	} {
		target := tiny(t, wideConfig, 1)
		target.files["tokenizer.json"] = tinyTokenizer
		draft := tiny(t, c.config, 2)
		if c.tokenizer != "" {
			draft.files["tokenizer.json"] = strings.Replace(c.tokenizer, `["a", "b"]`, `["b", "a"]`, 1)
		}
		store := openStore(t)
		dir := draft.write(t, t.TempDir())
		_, err := Create(t.Context(), store, modelName(t, "x"),
			parsed(t, "FROM "+target.write(t, t.TempDir())+"\nDRAFT "+dir), Options{})
		if !errors.Is(err, c.kind) || !strings.HasPrefix(err.Error(), dir) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if left := contents(t, store); len(left) != 0 {
			t.Errorf("%s: left %q", c.name, left)
		}
	}
}
