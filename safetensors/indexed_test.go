package safetensors

import (
	"strings"
	"testing"
)

// TestStaleIndex covers indexes that are not true of the files.
func TestStaleIndex(t *testing.T) {
	one := func(names ...string) []byte {
		var list []Tensor
		for _, name := range names {
			list = append(list, u8(name, 4))
		}
		return encode(t, list...)
	}
	shard := func(i, n int) string { return shardName(i, n) }
	old := index(t, "a", shard(1, 5), "b", shard(3, 5), "c", shard(5, 5))
	for _, c := range []struct {
		name, want string // tensors, as returned by places, or an error after the folder
		note       string
		files      files
	}{
		{"none of its files, one file", "a@model.safetensors b@model.safetensors c@model.safetensors",
			"lists files that do not exist; read instead: model.safetensors",
			files{"model.safetensors": one("a", "b", "c"), indexName: old}},
		{"none of its files, other shards", "a@" + shard(1, 2) + " b@" + shard(2, 2) + " c@" + shard(2, 2),
			"lists files that do not exist", files{shard(1, 2): one("a"), shard(2, 2): one("b", "c"), indexName: old}},
		{"none of its files, other tensors", "a@model.safetensors a.scales@model.safetensors",
			"lists files that do not exist", files{"model.safetensors": one("a", "a.scales"), indexName: old}},
		{"none of its files, other names", "a@x-1-of-2.safetensors b@x-2-of-2.safetensors", "lists files that do not exist",
			files{"x-1-of-2.safetensors": one("a"), "x-2-of-2.safetensors": one("b"), indexName: old}},
		{"none of its files, adapter beside", "a@model.safetensors", "lists files that do not exist",
			files{"model.safetensors": one("a"), "adapter_model.safetensors": one("z"), indexName: old}},
		{"an old shard is left", "a@" + shard(1, 2) + " b@" + shard(2, 2) + " c@" + shard(2, 2),
			"lists files that do not exist",
			files{shard(3, 5): one("b"), shard(1, 2): one("a"), shard(2, 2): one("b", "c"), indexName: old}},
		{"an old shard is left beside one file", "a@model.safetensors b@model.safetensors c@model.safetensors",
			"lists files that do not exist",
			files{shard(3, 5): one("b"), "model.safetensors": one("a", "b", "c"), indexName: old}},
		{"a shard was renamed", "a@" + shard(1, 2) + " b@model-rest.safetensors", "lists files that do not exist",
			files{shard(1, 2): one("a"), "model-rest.safetensors": one("b"),
				indexName: index(t, "a", shard(1, 2), "b", shard(2, 2))}},
		{"tensors moved between shards", "a@" + shard(1, 2) + " b@" + shard(2, 2),
			`2 tensors not in the file that it names, such as "a"`,
			files{shard(1, 2): one("a"), shard(2, 2): one("b"), indexName: index(t, "a", shard(2, 2), "b", shard(1, 2))}},
		{"tensor moved into a file that is not listed", "a@" + shard(1, 1) + " b@model-extra.safetensors",
			`1 tensor not in the file that it names, such as "b"`,
			files{shard(1, 1): one("a"), "model-extra.safetensors": one("b"),
				indexName: index(t, "a", shard(1, 1), "b", shard(1, 1))}},

		{"index of pickles", "a@model.safetensors", "lists files that do not exist",
			files{"model.safetensors": one("a"), "pytorch_model.bin": []byte("\x80\x02}"),
				indexName: index(t, "a", "pytorch_model.bin")}},
		{"pickles", "/pytorch_model.bin: source model is incomplete: " + indexName + " lists this file, but it is " +
			"a PyTorch pickle; use the model's safetensors checkpoint", "",
			files{"pytorch_model.bin": []byte("\x80\x02}"), indexName: index(t, "a", "pytorch_model.bin")}},
		{"missing shard", "/" + shard(3, 5) + ": source model is incomplete: " + indexName + " lists this file", "",
			files{shard(1, 5): one("a"), shard(5, 5): one("c"), indexName: old}},
		{"missing shard, incomplete file beside", "/" + shard(3, 5) + ": source model is incomplete", "",
			files{shard(1, 5): one("a"), shard(5, 5): one("c"), "model.safetensors": one("a", "c"), indexName: old}},
		{"all shards are missing", "/" + shard(1, 5) + ": source model is incomplete", "", files{indexName: old}},
		{"all shards are missing, incomplete set beside", "/" + shard(1, 5) + ": source model is incomplete", "",
			files{shard(1, 2): one("a", "b", "c"), indexName: old}},
		{"all shards are missing, ambiguous files beside", "/" + shard(1, 5) + ": source model is incomplete", "",
			files{"x.safetensors": one("a", "b", "c"), "y.safetensors": one("a", "b", "c"), indexName: old}},
		{"all shards are missing, a pointer beside", "/model.safetensors: invalid header: it is a Git LFS pointer", "",
			files{"model.safetensors": []byte("version https://git-lfs.github.com/spec/v1\n"), indexName: old}},
		{"a tensor is only in another copy of the model", "/" + shard(1, 1) + `: tensor "b": source model is incomplete: ` +
			"model.safetensors.index.json says that the tensor is in this file, but no file contains it " +
			"(model.safetensors.index.json does not list model.safetensors)", "",
			files{shard(1, 1): one("a"), "model.safetensors": one("a", "b"),
				indexName: index(t, "a", shard(1, 1), "b", shard(1, 1))}},
		{"pointer", "/" + indexName + ": invalid index: it is a Git LFS pointer to a file of 9 bytes", "",
			files{"model.safetensors": one("a"), indexName: []byte("version https://git-lfs.github.com/spec/v1\nsize 9\n")}},
		{"page", "/" + indexName + ": invalid index: it is an HTML page", "",
			files{"model.safetensors": one("a"), indexName: []byte("<!doctype html>")}},
		{"empty", "/" + indexName + ": invalid index: it is empty; download it again", "",
			files{"model.safetensors": one("a"), indexName: nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.files.write(t)
			got, err := OpenCheckpoint(dir)
			if strings.HasPrefix(c.want, "/") {
				wantError(t, err, nil, Dir(dir).Path(strings.TrimPrefix(c.want, "/")))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if list := strings.Join(places(got.Tensors()), " "); list != c.want {
				t.Errorf("tensors %s\nwant    %s", list, c.want)
			}
			if notes := strings.Join(got.Notes(), "; "); !strings.Contains(notes, c.note) || len(got.Notes()) != 1 {
				t.Errorf("notes %q, want %s", notes, c.note)
			}
			if wantStale := strings.Contains(c.note, "do not exist"); (got.Stale() != nil) != wantStale {
				t.Errorf("stale: %v", got.Stale())
			}
		})
	}
}

// TestFurther covers files that the index does not list, and tensors of them that become part of the model.
func TestFurther(t *testing.T) {
	a, b := encode(t, u8("a", 4)), encode(t, u8("b", 4), u8("c", 4))
	dir := files{
		"model.safetensors": encode(t, u8("a", 4), u8("z", 4)), "model-extra.safetensors": b, "copy.safetensors": a,
		"broken.safetensors": []byte("GG"), "consolidated.safetensors": encode(t, u8("d", 4)),
		indexName: index(t, "a", "model.safetensors"),
	}.write(t)
	c, err := OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := strings.Join(c.Unlisted(), " "); got != "broken.safetensors copy.safetensors model-extra.safetensors" {
		t.Error(got)
	}
	further := c.Further(Dir(dir))
	if got := strings.Join(places(further.Tensors()), " "); got != "b@model-extra.safetensors c@model-extra.safetensors" {
		t.Error(got)
	}
	z := c.Unindexed()[0]
	c.Adopt([]Source{further.Tensors()[0], z}, further)
	if got := strings.Join(places(c.Tensors()), " "); got != "a@model.safetensors b@model-extra.safetensors "+
		"z@model.safetensors" {
		t.Error(got)
	}
	if got := strings.Join(places(c.Unindexed()), " "); got != "c@model-extra.safetensors" {
		t.Error(got)
	}
	want := []string{
		indexName + " does not list 1 tensor of model-extra.safetensors that the model has; they are read",
		indexName + " does not list 1 tensor of model.safetensors that the model has; they are read",
	}
	if got := c.Notes(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}
