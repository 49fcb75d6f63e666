package convert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/zeebo/blake3"
)

func records(t *testing.T, s *store.Store, r Result) []provenance.ImageRecord {
	t.Helper()
	list, err := provenance.Read(t.Context(), s, r.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func record(t *testing.T, s *store.Store, r Result) provenance.ImageRecord {
	t.Helper()
	list := records(t, s, r)
	if len(list) != 1 || list[0].Image != r.Digest {
		t.Fatalf("%d records, the first about %v", len(list), list)
	}
	return list[0]
}

func hexSum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// hexBLAKE3 is the checksum of a tensor.
func hexBLAKE3(b []byte) string {
	s := blake3.Sum256(b)
	return hex.EncodeToString(s[:])
}

// The hash is BLAKE3's: the digests are from the reference implementation, of its test input (bytes i mod 251).
func TestBLAKE3(t *testing.T) {
	for size, want := range map[int]string{
		5121:   "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff",
		102400: "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
	} {
		input := make([]byte, size)
		for i := range input {
			input[i] = byte(i % 251)
		}
		if got := hexBLAKE3(input); got != want {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
}

// A checksum names its algorithm.
func TestSourceDigest(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "w", "blake3": "12ab"}`:      "blake3:12ab",
		`{"name": "w", "blob": "sha256:34cd"}`: "sha256:34cd",
		`{"name": "w"}`:                        "",
	} {
		var s provenance.SourceTensor
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Digest() != want {
			t.Errorf("%s: %q, %v", text, s.Digest(), err)
		}
	}
}

// checkSums compares a record's checksums with the checkpoint's tensors.
func checkSums(t *testing.T, p provenance.ImageRecord, c *checkpoint) {
	t.Helper()
	want := map[string]string{}
	for file, list := range c.tensors {
		for _, tn := range list {
			want[file+" "+tn.Name] = hexBLAKE3(tn.data)
		}
	}
	seen := map[string]bool{}
	for _, tn := range p.Tensors {
		if len(tn.Sources) == 0 || tn.Type == "" || tn.Rule == "" || len(tn.Transform) == 0 {
			t.Errorf("%+v says too little", tn)
		}
		for _, s := range tn.Sources {
			key := s.File + " " + s.Name
			if seen[key] = true; s.BLAKE3 != want[key] {
				t.Errorf("%s: sum %s, want %s", key, s.BLAKE3, want[key])
			}
		}
	}
	for _, d := range p.Dropped {
		seen[d.File+" "+d.Name] = true
	}
	if len(seen) != len(want) {
		t.Errorf("%d of %d tensors of the checkpoint are told", len(seen), len(want))
	}
}

func TestProvenance(t *testing.T) {
	for name, opts := range map[string]Options{
		"plain":     {},
		"quantized": {Precision: recipe.Precision{Type: quantize.Int4}},
		"one":       {Precision: recipe.Precision{Type: quantize.Int8}, Parallel: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := tiny(t, tinyConfig, 1).shard(2)
			store := openStore(t)
			dir := c.write(t, t.TempDir())
			opts.Version = "1.2.3"
			r := mustCreate(t, store, "x", from(dir), opts)
			p := record(t, store, r)
			checkSums(t, p, c)
			if p.Program != "ingot 1.2.3" || (p.Quantization != nil) != (opts.Precision.Type != 0) {
				t.Errorf("made by %s, asked for %+v", p.Program, p.Quantization)
			}
			var files []string
			for _, f := range p.From.Files {
				if info, err := os.Stat(filepath.Join(dir, f.Name)); err != nil || info.Size() != f.Size || f.SHA256 != "" {
					t.Errorf("%+v, in truth %v, %v", f, info, err)
				}
				files = append(files, f.Name)
			}
			if want := []string{"config.json", "model-00001-of-00002.safetensors",
				"model-00002-of-00002.safetensors"}; !slices.Equal(files, want) {
				t.Errorf("files %q, want %q", files, want)
			}
			text, _ := json.Marshal(p)
			if strings.Contains(string(text), dir) {
				t.Errorf("the record names the folder: %s", text)
			}
		})
	}
}

// The record depends only on the files; the image does not even depend on their names.
func TestProvenanceIsReproducible(t *testing.T) {
	store := openStore(t)
	a := mustCreate(t, store, "a", from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{})
	b := mustCreate(t, store, "b", from(tiny(t, tinyConfig, 1).write(t, filepath.Join(t.TempDir(), "moved"))),
		Options{Parallel: 1})
	record(t, store, a) // verifies that there is exactly one
	c := mustCreate(t, store, "c", from(tiny(t, tinyConfig, 1).shard(3).write(t, t.TempDir())), Options{})
	if a.Digest != b.Digest || a.Digest != c.Digest {
		t.Errorf("the images are %s, %s, %s", a.Digest, b.Digest, c.Digest)
	}
	if n := len(records(t, store, a)); n != 2 {
		t.Errorf("%d records, want one of each checkpoint", n)
	}
	mustCreate(t, store, "d", from("a"), Options{})
	if n := len(records(t, store, a)); n != 2 {
		t.Errorf("making the image of itself makes %d records of 2", n)
	}
}

// Checksums cover the bytes in the files, whether a source is stacked, split, gathered or unpacked.
func TestProvenanceOfLayouts(t *testing.T) {
	for _, name := range []string{"models/qwen3_5_moe-next-published", "models/qwen3_moe-fused",
		"models/glm4_moe_lite-published", "models/gemma4-26b-a4b-mlx", "sources/gptq", "sources/mlx-experts"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("..", "testdata", filepath.FromSlash(name))
			store := openStore(t)
			p := record(t, store, mustCreate(t, store, "x", from(dir), Options{}))
			all, err := safetensors.OpenCheckpoint(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer all.Close()
			for _, tn := range p.Tensors {
				for _, s := range tn.Sources {
					found, ok := all.Lookup(s.Name)
					if !ok {
						t.Fatalf("%s: there is no %s", tn.Name, s.Name)
					}
					data := make([]byte, found.Size())
					if _, err := found.Reader().ReadAt(data, 0); err != nil {
						t.Fatal(err)
					}
					if s.BLAKE3 != hexBLAKE3(data) || s.DType != found.DType || !slices.Equal(s.Shape, found.Shape) {
						t.Errorf("%s: source %+v", tn.Name, s)
					}
				}
			}
		})
	}
}

// A resumed run restores the checksums that the earlier run stored, and computes the others.
func TestProvenanceOfResumed(t *testing.T) {
	for name, note := range map[string]string{
		"noted": "", "forgotten": `"not_read":"`, "damaged": `"note":"?`,
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			c := finiteWeights(tiny(t, tinyConfig, 1))
			dir := c.write(t, t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := Create(ctx, store, modelName(t, "x"), from(dir), Options{Parallel: 1, Progress: func(e write.Event) {
				if e.Tensors == 10 {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			journals, err := filepath.Glob(filepath.Join(store.Root(), "ingest", "create-*", "journal"))
			if err != nil || len(journals) != 1 {
				t.Fatalf("%q, %v", journals, err)
			}
			text, err := os.ReadFile(journals[0])
			if err != nil || !bytes.Contains(text, []byte(`"note":"`)) {
				t.Fatalf("%s, %v", text, err)
			}
			if note != "" {
				writeFile(t, journals[0], bytes.ReplaceAll(text, []byte(`"note":"`), []byte(note)))
			}
			r := mustCreate(t, store, "x", from(dir), Options{})
			if r.Resumed == 0 {
				t.Error("nothing was there")
			}
			checkSums(t, record(t, store, r), c)
		})
	}
}

func TestProvenanceHashesFiles(t *testing.T) {
	store := openStore(t)
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	p := record(t, store, mustCreate(t, store, "a", from(dir), Options{HashFiles: true}))
	for _, f := range p.From.Files {
		if data, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || f.SHA256 != hexSum(data) {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if len(p.From.Files) != 2 {
		t.Errorf("files %+v", p.From.Files)
	}
}

// An image's sources are known across intermediate images, and their records are removed with the last of these.
func TestProvenanceOfImages(t *testing.T) {
	store := openStore(t)
	base := mustCreate(t, store, "base", from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{})
	small := mustCreate(t, store, "small", from("base"), Options{Precision: recipe.Precision{Type: quantize.Int8}})
	spoken := mustCreate(t, store, "spoken", from("small", modelfile.Command{Name: modelfile.System, Value: "Be brief."}),
		Options{})
	if err := collect.Remove(t.Context(), store, modelName(t, "base"), modelName(t, "small")); err != nil {
		t.Fatal(err)
	}
	list := records(t, store, spoken)
	var got []string
	for _, r := range list {
		got = append(got, r.Image.String()+" from "+r.From.Image.String())
	}
	want := []string{spoken.Digest.String() + " from " + small.Digest.String(), small.Digest.String() + " from " +
		base.Digest.String(), base.Digest.String() + " from "}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if s := list[1].Tensors[0].Sources[0]; s.Blob.Validate() != nil || s.BLAKE3 != "" || s.File != "" {
		t.Errorf("a source in the store is %+v", s)
	}
	if err := collect.Remove(t.Context(), store, modelName(t, "spoken")); err != nil {
		t.Fatal(err)
	}
	if left := contents(t, store); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestProvenanceOfDraft(t *testing.T) {
	store := openStore(t)
	c, d := tiny(t, tinyConfig, 1), tiny(t, tinyConfig, 2)
	p := record(t, store, mustCreate(t, store, "pair", from(c.write(t, t.TempDir()),
		modelfile.Command{Name: modelfile.Draft, Value: d.write(t, t.TempDir())}), Options{}))
	if p.Draft == nil || len(p.Draft.Files) != 2 {
		t.Errorf("draft %+v", p.Draft)
	}
	n := slices.IndexFunc(p.Tensors, func(m provenance.MadeTensor) bool { return blob.IsDraft(m.Name) })
	draft := p
	draft.Tensors = p.Tensors[n:]
	checkSums(t, draft, d)
	p.Tensors = p.Tensors[:n]
	checkSums(t, p, c)
}

// A damaged record is an error of its own, not of the image.
func TestProvenanceDamaged(t *testing.T) {
	store := openStore(t)
	r := mustCreate(t, store, "a", from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{})
	list, err := store.Referrers(t.Context(), r.Digest, provenance.Type)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	var artifact ocispec.Manifest
	if data, err := store.ReadBlob(list[0].Digest, manifest.MaxManifestSize); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(data, &artifact); err != nil || len(artifact.Layers) != 1 {
		t.Fatalf("%s, %v", data, err)
	}
	path, layers := store.BlobPath(artifact.Layers[0].Digest), artifact.Layers
	for text, want := range map[string]string{"{": "provenance " + layers[0].Digest.String() + ": ",
		"": "is not as long"} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, []byte(text))
		if _, err := provenance.Read(t.Context(), store, r.Digest); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		if _, err := store.Resolve(t.Context(), modelName(t, "a")); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := provenance.Read(t.Context(), store, r.Digest); err == nil ||
		!strings.Contains(err.Error(), layers[0].Digest.String()) {
		t.Errorf("error %v", err)
	}
}
