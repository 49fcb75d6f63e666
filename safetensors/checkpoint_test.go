package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shardName returns the name of shard n of count.
func shardName(n, count int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", n, count) }

// files describes a folder to create: file name to content.
type files map[string][]byte

func (f files) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range f {
		writeFile(t, dir, name, content)
	}
	return dir
}

// index returns an index file that maps tensors to shards, given as alternating arguments.
func index(t *testing.T, pairs ...string) []byte {
	t.Helper()
	weights := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		weights[pairs[i]] = pairs[i+1]
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": weights})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// places describes sources as NAME@FILE.
func places(sources []Source) (list []string) {
	for _, s := range sources {
		list = append(list, s.Name+"@"+filepath.Base(s.File.Path()))
	}
	return list
}

func TestOpenCheckpoint(t *testing.T) {
	one := func(names ...string) []byte {
		var tensors []Tensor
		for _, n := range names {
			tensors = append(tensors, u8(n, 4))
		}
		return encode(t, tensors...)
	}
	s1, s2 := shardName(1, 2), shardName(2, 2)
	for _, tt := range []struct {
		name      string
		files     files
		want      string // as returned by places
		unindexed string
	}{
		{"single file", files{"model.safetensors": one("b", "a"), "config.json": nil},
			"a@model.safetensors b@model.safetensors", ""},
		{"shards", files{s1: one("b"), s2: one("a")}, "a@" + s2 + " b@" + s1, ""},
		{"shards and an index", files{s1: one("b"), s2: one("a"), indexName: index(t, "a", s2, "b", s1)},
			"a@" + s2 + " b@" + s1, ""},
		{"index with Python's numbers", files{s1: one("b"), s2: one("a"), indexName: bytes.Replace(
			index(t, "a", s2, "b", s1), []byte(`"total_size":1`), []byte(`"total_size":NaN,"x":-Infinity`), 1)},
			"a@" + s2 + " b@" + s1, ""},
		{"index over one file", files{"model.safetensors": one("a"), indexName: index(t, "a", "model.safetensors")},
			"a@model.safetensors", ""},
		{"index with its own names", files{"x.safetensors": one("a"), indexName: index(t, "a", "x.safetensors")},
			"a@x.safetensors", ""},
		{"tensors outside the index", files{s1: one("b", "z", "y"), s2: one("a"), indexName: index(t, "a", s2, "b", s1)},
			"a@" + s2 + " b@" + s1, "y@" + s1 + " z@" + s1},
		{"the index decides between two",
			files{s1: one("a", "b"), s2: one("b", "c"), indexName: index(t, "a", s1, "b", s2, "c", s2)},
			"a@" + s1 + " b@" + s2 + " c@" + s2, "b@" + s1},
		{"the index ignores other files",
			files{s1: one("a"), "model.safetensors": one("a"), "consolidated.safetensors": nil, indexName: index(t, "a", s1)},
			"a@" + s1, ""},
		{"consolidated beside the model", files{"model.safetensors": one("a"), "consolidated.safetensors": nil},
			"a@model.safetensors", ""},
		{"other file beside the model", files{"model.safetensors": one("a"), "other.safetensors": nil, "x.bin": nil},
			"a@model.safetensors", ""},
		{"six digits", files{"model-00001-of-000001.safetensors": one("a")}, "a@model-00001-of-000001.safetensors", ""},
		{"several files without numbers", files{"model-a.safetensors": one("a"), "model-b.safetensors": one("b")},
			"a@model-a.safetensors b@model-b.safetensors", ""},
		{"shards and one more file", files{s1: one("a"), s2: one("b"), "model-mtp.safetensors": one("c")},
			"a@" + s1 + " b@" + s2 + " c@model-mtp.safetensors", ""},
		{"one file of another name",
			files{"tuned.safetensors": one("a"), "consolidated.safetensors": nil, "adapter_model.safetensors": nil},
			"a@tuned.safetensors", ""},
		{"shards of another name", files{"tuned-1-of-2.safetensors": one("a"), "tuned-2-of-2.safetensors": one("b")},
			"a@tuned-1-of-2.safetensors b@tuned-2-of-2.safetensors", ""},
		{"other names of the format", files{"weights.sft": one("a"), "notes": nil}, "a@weights.sft", ""},
		{"upper case", files{"MODEL.SAFETENSORS": one("a")}, "a@MODEL.SAFETENSORS", ""},
		{"shards of another extension", files{"model-1-of-2.sft": one("a"), "model-2-of-2.sft": one("b")},
			"a@model-1-of-2.sft b@model-2-of-2.sft", ""},
		{"no extension", files{"model": one("a")}, "a@model", ""},
		{"GGUF with the name of weights", files{"model.safetensors": []byte("GGUF"), "real": one("a")}, "a@real", ""},
		{"dot files", files{"model.safetensors": one("a"), "._model.safetensors": nil, ".model.safetensors": nil},
			"a@model.safetensors", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OpenCheckpoint(tt.files.write(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := strings.Join(places(c.Tensors()), " "); got != tt.want {
				t.Errorf("tensors\n got %s\nwant %s", got, tt.want)
			}
			if got := strings.Join(places(c.Unindexed()), " "); got != tt.unindexed {
				t.Errorf("unindexed\n got %s\nwant %s", got, tt.unindexed)
			}
			for _, s := range c.Tensors() {
				if got, ok := c.Lookup(s.Name); !ok || got.File != s.File || got.Reader().Size() != 4 {
					t.Errorf("lookup of %s: %v, %v", s.Name, got, ok)
				}
			}
			if _, ok := c.Lookup("none"); ok {
				t.Error("found a tensor that does not exist")
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenCheckpointDamaged covers every kind of invalid folder. DIR in an expected message stands for the folder.
func TestOpenCheckpointDamaged(t *testing.T) {
	a, b := encode(t, u8("a", 100)), encode(t, u8("b", 100))
	s1, s2, s3 := shardName(1, 2), shardName(2, 2), shardName(1, 3)
	const monolith = "model.safetensors"
	pickle := []byte("PK\x03\x04" + strings.Repeat("\x00", 22) + "\x10\x00\x00\x00archive/data.pkl")
	for _, tt := range []struct {
		name     string
		files    files
		sentinel error
		want     string
	}{
		// With an index.
		{"missing shard", files{s1: a, indexName: index(t, "a", s1, "b", s2)}, ErrIncomplete,
			"DIR/" + s2 +
				": source model is incomplete: model.safetensors.index.json lists this file, but it does not exist; download it " +
				"again"},
		{"truncated shard", files{s1: a, s2: b[:len(b)-1], indexName: index(t, "a", s1, "b", s2)}, ErrTruncated,
			"DIR/" + s2 +
				`: tensor "b": truncated file: the file has 227 bytes, but the header describes 228; download it again`},
		{"empty shard", files{s1: nil, indexName: index(t, "a", s1)}, ErrTruncated,
			"DIR/" + s1 + ": truncated file: 0 bytes"},
		{"tensor missing from its shard", files{s1: a, s2: b, indexName: index(t, "a", s1, "b", s2, "c", s2)}, ErrIncomplete,
			"DIR/" + s2 +
				`: tensor "c": source model is incomplete: model.safetensors.index.json says that the tensor is in this file, ` +
				`but no file contains it`},
		{"tensor in several other shards",
			files{s1: a, s2: a, "x.safetensors": b, indexName: index(t, "a", "x.safetensors", "b", s1, "c", s2)}, ErrIncomplete,
			"DIR/x.safetensors" +
				`: tensor "a": source model is incomplete: model.safetensors.index.json says that the tensor is in this file, ` +
				`but several others contain it`},
		{"broken index", files{monolith: a, indexName: []byte("{")}, ErrIndex,
			"DIR/" + indexName + ": invalid index: JSON byte 1: want '\"', found the end"},
		{"path in the index", files{monolith: a, indexName: index(t, "a", "../"+monolith)}, ErrIndex,
			"DIR/" + indexName + `: tensor "a": invalid index: shard "../model.safetensors"`},
		{"broken header", files{s1: raw("{", 0), indexName: index(t, "a", s1)}, ErrHeader,
			"DIR/" + s1 + ": invalid header: JSON byte 1"},

		// Without an index.
		{"monolith beside shards", files{monolith: a, s1: a, s2: b}, ErrAmbiguous,
			"DIR: ambiguous weights: model.safetensors beside " + s1 + ": keep one of them, or add " + indexName},
		{"monolith beside a variant", files{monolith: a, "model.fp16.safetensors": a}, ErrAmbiguous,
			"DIR: ambiguous weights: model.safetensors beside model.fp16.safetensors"},
		{"duplicate tensor", files{s1: a, s2: a}, ErrDuplicate,
			"DIR/" + s2 + `: tensor "a": duplicate: it is also in ` + s1 +
				", and there is no " + indexName + " to decide between them"},
		{"first shard missing", files{s2: b}, ErrIncomplete,
			"DIR: source model is incomplete: " + s1 + " is missing; download it"},
		{"last shard missing", files{s1: a}, ErrIncomplete,
			"DIR: source model is incomplete: " + s2 + " is missing; download it"},
		{"shards of two sets", files{s1: a, s2: b, s3: a}, ErrAmbiguous,
			"DIR: ambiguous weights: " + s1 + " and " + s3 + " belong to different sets of shards"},
		{"number zero", files{shardName(0, 2): a, s1: b}, ErrAmbiguous,
			"DIR: ambiguous weights: " + shardName(0, 2) + ": the number is not between 1 and 2"},
		{"number over the count", files{s1: a, shardName(3, 2): b}, ErrAmbiguous,
			"DIR: ambiguous weights: " + shardName(3, 2) + ": the number is not between 1 and 2"},
		{"one number twice", files{"model-1-of-00002.safetensors": a, s1: a, s2: b}, ErrAmbiguous,
			"DIR: ambiguous weights: " + s1 + " and model-1-of-00002.safetensors have the same number"},
		{"two files of other names", files{"x.safetensors": a, "y.safetensors": b}, ErrAmbiguous,
			"DIR: ambiguous weights: x.safetensors and y.safetensors: keep one and name it model.safetensors, or add " +
				indexName},
		{"shard of another name missing", files{"x-1-of-2.safetensors": a}, ErrIncomplete,
			"DIR: source model is incomplete: x-2-of-2.safetensors is missing"},
		{"truncated file", files{monolith: a[:200]}, ErrTruncated,
			"DIR/" + monolith + `: tensor "a": truncated file: the file has 200 bytes, but the header describes 228`},
		{"no tensors", files{monolith: raw("{}", 0)}, ErrNoWeights,
			"DIR: no safetensors weights: model.safetensors contains no tensors"},

		// Without weights.
		{"empty folder", files{}, ErrNoWeights,
			"DIR: no safetensors weights: expected model.safetensors, or shards and model.safetensors.index.json"},
		{"no weights", files{"config.json": nil, "model.txt": nil}, ErrNoWeights,
			"DIR: no safetensors weights: expected model.safetensors"},
		{"pickle", files{"a.bin": nil, "pytorch_model.bin": pickle}, ErrNoWeights,
			"DIR: no safetensors weights: found pytorch_model.bin: a PyTorch pickle runs code when it is read: use the " +
				"model's safetensors checkpoint"},
		{"old pickle of any name", files{"x": []byte("\x80\x02\x8a\nl\xfc\x9c")}, ErrNoWeights,
			"DIR: no safetensors weights: found x: a PyTorch pickle runs code when it is read"},
		{"pickle of Mistral", files{"consolidated.00.pth": pickle}, ErrNoWeights,
			"DIR: no safetensors weights: found consolidated.00.pth: a PyTorch pickle runs code when it is read"},
		{"pickle with the name of weights", files{"model.safetensors": pickle}, ErrHeader,
			"DIR/model.safetensors: invalid header: it is a PyTorch pickle, want a safetensors file"},
		{"Keras", files{"tf_model.h5": []byte("\x89HDF\r\n\x1a\n")}, ErrNoWeights,
			"DIR: no safetensors weights: found tf_model.h5: it is an HDF5 file of Keras or TensorFlow, want a " +
				"safetensors file"},
		{"pointer", files{"pytorch_model.bin": []byte("version https://git-lfs.github.com/spec/v1\n")}, ErrNoWeights,
			"DIR: no safetensors weights: found pytorch_model.bin: it is a Git LFS pointer, not the file itself: run git lfs " +
				"pull"},
		{"consolidated", files{"consolidated.safetensors": a}, ErrNoWeights,
			"DIR: no safetensors weights: found consolidated.safetensors: only Mistral's own layout"},
		{"adapter", files{"adapter_model.safetensors": a}, ErrNoWeights,
			"DIR: no safetensors weights: found adapter_model.safetensors: an adapter is not a model"},
		{"gguf with the name of weights", files{"model.safetensors": []byte("GGUF")}, ErrNoWeights,
			"DIR: no safetensors weights: found model.safetensors: open the GGUF file itself"},
		{"gguf", files{"x.bin": []byte("GGUF")}, ErrNoWeights,
			"DIR: no safetensors weights: found x.bin: open the GGUF file itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.files.write(t)
			c, err := OpenCheckpoint(dir)
			want := strings.ReplaceAll(strings.ReplaceAll(tt.want, "DIR/", "DIR"+string(filepath.Separator)), "DIR", dir)
			wantError(t, err, tt.sentinel, want)
			if c != nil {
				t.Error("a checkpoint was returned with the error")
			}
		})
	}
}

func TestOpenCheckpointFolder(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenCheckpoint(filepath.Join(dir, "none"))
	wantError(t, err, fs.ErrNotExist, "")
	file := writeFile(t, dir, "model.safetensors", encode(t, u8("a", 1)))
	_, err = OpenCheckpoint(file)
	wantError(t, err, nil, file+": not a folder: name the folder that contains the model")
	if err := os.Mkdir(filepath.Join(dir, indexName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = OpenCheckpoint(dir)
	wantError(t, err, ErrIndex, filepath.Join(dir, indexName)+": invalid index: not a regular file")
}

// TestOpenCheckpointDanglingLinks covers a download cache, in which links exist before their targets.
func TestOpenCheckpointDanglingLinks(t *testing.T) {
	dir := files{indexName: index(t, "a", "model.safetensors")}.write(t)
	if err := os.Symlink("blob", filepath.Join(dir, "model.safetensors")); err != nil {
		t.Skipf("this system lets us make no symbolic links: %v", err)
	}
	_, err := OpenCheckpoint(dir)
	wantError(t, err, ErrIncomplete, filepath.Join(dir, "model.safetensors")+": source model is incomplete: ")
	if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("blob", filepath.Join(dir, indexName)); err != nil {
		t.Fatal(err)
	}
	_, err = OpenCheckpoint(dir)
	wantError(t, err, ErrIncomplete, filepath.Join(dir, indexName)+
		`: source model is incomplete: it is a link to "blob", which does not exist: the download is incomplete`)
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("an unfinished download is taken for a missing file")
	}
}

// TestCheckpointClosed checks that Close closes every file, and that a later read returns an error that names the file.
func TestCheckpointClosed(t *testing.T) {
	dir := files{shardName(1, 2): encode(t, u8("a", 4)), shardName(2, 2): encode(t, u8("b", 4))}.write(t)
	c, err := OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@" + shardName(1, 2), "b@" + shardName(2, 2)}, places(c.Tensors())); diff != "" {
		t.Error(diff)
	}
	if got := len(c.Files()); got != 2 {
		t.Errorf("%d files, want 2", got)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Tensors() {
		_, err := s.Reader().Read(make([]byte, 1))
		wantError(t, err, os.ErrClosed, s.File.Path()+": tensor ")
	}
}
