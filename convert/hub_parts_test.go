package convert

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/safetensors"
)

// FROM, ADAPTER and DRAFT of a hub give the digest of the same folders, and each is recorded with its commit.
func TestHubParts(t *testing.T) {
	h := newHub(t)
	add := func(name, dir string) string {
		t.Helper()
		if _, err := h.AddFolder(name, dir); err != nil {
			t.Fatal(err)
		}
		return "hf.co/" + name
	}
	target := finiteWeights(tiny(t, strings.Replace(wideConfig, `"num_hidden_layers": 2`, `"num_hidden_layers": 4`, 1),
		1)).write(t, t.TempDir())
	draft := finiteWeights(tiny(t, wideConfig, 2)).write(t, t.TempDir())
	adapter := absolute(t, filepath.Join("..", "testdata", "adapters", "linear"))
	for _, c := range []struct{ line, first, second string }{
		{"ADAPTER", absolute(t, llamaF32), adapter}, {"DRAFT", target, draft},
	} {
		what := strings.ToLower(c.line)
		first, second := add("tiny/for-"+what, c.first), add("tiny/"+what, c.second)
		opts := Options{
			Precision: recipe.Precision{Type: quantize.Int8}, HashFiles: true, Remote: hubClient(h, hub.Options{}),
		}
		s := openStore(t)
		local := mustCreate(t, s, "local", parsed(t, "FROM "+c.first+"\n"+c.line+" "+c.second), opts)
		remote := mustCreate(t, s, "remote", parsed(t, "FROM "+first+"\n"+c.line+" "+second), opts)
		if local.Digest != remote.Digest {
			t.Errorf("%s: %s, want %s", c.line, remote.Digest, local.Digest)
		}
	}
}

// A dropped copy of the embedding is compared with it, by a create only.
func TestHubTied(t *testing.T) {
	h := newHub(t)
	config := strings.Replace(tinyConfig, `"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1)
	for _, wrong := range []bool{false, true} {
		c := tiny(t, config, 1)
		head := c.tensors["model.safetensors"][0]
		if head.Name != "model.embed_tokens.weight" {
			t.Fatal(head.Name)
		}
		head.Name, head.data = "lm_head.weight", bytes.Clone(head.data)
		if wrong {
			head.data[len(head.data)-1] ^= 1
		}
		c.add("model.safetensors", head)
		dir := c.write(t, t.TempDir())
		name := fmt.Sprintf("tiny/wrong-%t", wrong)
		if _, err := h.AddFolder(name, dir); err != nil {
			t.Fatal(err)
		}
		want, refused := createFrom(t.Context(), newStore(t), dir, nil, nil)
		for _, opts := range []hub.Options{{}, {Verify: true}, {Memory: 1}} {
			got, err := createFrom(t.Context(), newStore(t), "hf.co/"+name, hubClient(h, opts), nil)
			if got.Digest != want.Digest || (err != nil) != wrong || (refused != nil) != wrong {
				t.Errorf("%+v: %s, want %s; error %v, want %v", opts, got.Digest, want.Digest, err, refused)
			}
			if wrong && !strings.Contains(fmt.Sprint(err), "it differs from model.embed_tokens.weight") {
				t.Error(err)
			}
		}
		fresh := newHub(t) // since the last create's bodies may still be on their way
		if _, err := fresh.AddFolder(name, dir); err != nil {
			t.Fatal(err)
		}
		file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: "hf.co/" + name}}}
		if _, err := DryRun(t.Context(), nil, file, Options{Remote: hubClient(fresh, hub.Options{})}); err != nil {
			t.Error(err)
		}
		if n := fresh.Sent(); n > int64(len(head.data)) {
			t.Errorf("the dry run read %d bytes", n)
		}
	}
}

// Damage is found where all bytes are read, whatever the order of the tensors in the file.
func TestHubVerifySource(t *testing.T) {
	h := newHub(t)
	c := tiny(t, tinyConfig, 1)
	// A tensor that is dropped, so that nobody reads it.
	extra := random(rand.New(rand.NewPCG(1, 1)), "model.layers.0.self_attn.rotary_emb.inv_freq", safetensors.BF16, 1<<20)
	c.tensors["model.safetensors"] = append([]tensor{extra}, c.tensors["model.safetensors"]...)
	dir := c.write(t, t.TempDir())
	repository, err := h.AddFolder("tiny/model", dir)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	repository.Replace("model.safetensors", hubtest.Bytes(bad), true)
	if _, err := createFrom(t.Context(), newStore(t), "hf.co/tiny/model", hubClient(h, hub.Options{}), nil); err != nil {
		t.Errorf("not all bytes are read, but %v", err)
	}
	_, err = createFrom(t.Context(), newStore(t), "hf.co/tiny/model", hubClient(h, hub.Options{Verify: true}), nil)
	if err == nil || !strings.Contains(err.Error(), "hf.co/tiny/model/model.safetensors: the checksum differs") {
		t.Error(err)
	}
	repository.Replace("model.safetensors", hubtest.Bytes(good), true)
	got, err := createFrom(t.Context(), newStore(t), "hf.co/tiny/model", hubClient(h, hub.Options{Verify: true}), nil)
	want, _ := createFrom(t.Context(), newStore(t), dir, nil, nil)
	if err != nil || got.Digest != want.Digest {
		t.Errorf("%s, want %s: %v", got.Digest, want.Digest, err)
	}
}
