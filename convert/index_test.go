package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/safetensors"
)

// TestIndex covers an index that is not true of the files.
func TestIndex(t *testing.T) {
	const norm = "model.layers.0.input_layernorm.weight"
	want := mustCreate(t, openStore(t), "x", from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{}).Digest
	rename := func(t *testing.T, dir, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	// extra moves tensors to a file that the index does not list.
	extra := func(t *testing.T, c *checkpoint, name string, move func(string) bool) {
		var moved []tensor
		for _, list := range c.tensors {
			for _, tn := range list {
				if move(tn.Name) {
					moved = append(moved, tn)
				}
			}
		}
		for _, tn := range moved {
			c.unlist(t, tn.Name)
			c.drop(tn.Name)
			c.add(name, tn)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *checkpoint)
		after  func(t *testing.T, dir string)
		note   string
		err    []string
	}{
		{"tensor that is not listed", func(t *testing.T, c *checkpoint) { c.unlist(t, norm) }, nil,
			"does not list 1 tensor of model-0", nil},
		{"file that is not listed", func(t *testing.T, c *checkpoint) {
			extra(t, c, "model-extra.safetensors", func(name string) bool { return strings.Contains(name, ".layers.1.") })
		}, nil, "tensors of model-extra.safetensors that the model has", nil},
		{"file of another name that is not listed", func(t *testing.T, c *checkpoint) {
			extra(t, c, "rest.safetensors", func(name string) bool { return name == norm })
		}, nil, "1 tensor of rest.safetensors that the model has", nil},
		{"file with other tensors too", func(t *testing.T, c *checkpoint) {
			extra(t, c, "rest.safetensors", func(name string) bool { return name == norm })
			tn := c.tensors["rest.safetensors"][0]
			tn.Name = "mtp.norm.weight"
			c.add("rest.safetensors", tn)
		}, nil, "1 tensor of rest.safetensors that the model has", nil},
		{"copy beside complete shards", nil, func(t *testing.T, dir string) {
			one := tiny(t, tinyConfig, 2).write(t, t.TempDir())
			for _, name := range []string{"model.safetensors", "consolidated.safetensors", "other.safetensors"} {
				data, err := os.ReadFile(filepath.Join(one, "model.safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, name), data)
			}
		}, "", nil},
		{"other shards than listed", nil, func(t *testing.T, dir string) {
			rename(t, dir, "model-00001-of-00002.safetensors", "m-1-of-2.safetensors")
			rename(t, dir, "model-00002-of-00002.safetensors", "m-2-of-2.safetensors")
		}, "lists files that do not exist; read instead: m-1-of-2.safetensors, m-2-of-2.safetensors", nil},
		{"missing shard", nil, func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "model-00002-of-00002.safetensors"))
		}, "", []string{
			"model-00002-of-00002.safetensors: source model is incomplete: ", "does not exist; download it again",
		}},
		{"all shards are missing, another model beside", nil, func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "model-00002-of-00002.safetensors"))
			rename(t, dir, "model-00001-of-00002.safetensors", "vae.safetensors")
		}, "", []string{"model-00001-of-00002.safetensors: source model is incomplete: ",
			"download it again (of the files that are there: ", "absent"}},
		{"tensor that is nowhere, file that is not listed", func(t *testing.T, c *checkpoint) {
			c.unlist(t, norm)
			c.drop(norm)
			tn := c.tensors["model-00001-of-00002.safetensors"][0]
			tn.Name = "mtp.norm.weight"
			c.add("extra.safetensors", tn)
		}, nil, "", []string{norm + ": absent", "does not list extra.safetensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ck := tiny(t, tinyConfig, 1).shard(2)
			if c.change != nil {
				c.change(t, ck)
			}
			dir := ck.write(t, t.TempDir())
			if c.after != nil {
				c.after(t, dir)
			}
			if c.err != nil {
				err := refusal(t, "FROM "+dir)
				for _, want := range c.err {
					if !strings.Contains(err, want) {
						t.Errorf("%s\nwant %s", err, want)
					}
				}
				return
			}
			r := mustCreate(t, openStore(t), "x", from(dir), Options{})
			if notes := strings.Join(r.Warnings, "\n"); r.Digest != want || !strings.Contains(notes, c.note) ||
				c.note == "" && strings.Contains(notes, source.IndexName) {
				t.Errorf("digest %s, want %s; notes %q, want %q", r.Digest, want, notes, c.note)
			}
		})
	}
	_, err := source.Open(filepath.Join(t.TempDir(), "gone"), source.Options{})
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, safetensors.ErrIncomplete) {
		t.Error(err)
	}
}
