package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

func mustExport(t *testing.T, s *store.Store, name, dir string, opts export.Options) export.Result {
	t.Helper()
	out, err := export.Folder(t.Context(), s, mustResolve(t, s, name), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// folderTensors reads all tensors of a folder.
func folderTensors(t *testing.T, dir string) map[string]tensor {
	t.Helper()
	c, err := safetensors.OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := map[string]tensor{}
	for _, s := range c.Tensors() {
		data, err := io.ReadAll(s.Reader())
		if err != nil {
			t.Fatal(err)
		}
		s.Begin, s.End = 0, 0
		out[s.Name] = tensor{s.Tensor, data}
	}
	if len(c.Unindexed()) > 0 {
		t.Errorf("the index lacks %v", c.Unindexed())
	}
	return out
}

func sameTensors(t *testing.T, got, want map[string]tensor) {
	t.Helper()
	for name, w := range want {
		g, ok := got[name]
		if !ok || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !bytes.Equal(g.data, w.data) {
			t.Errorf("%s: %s %v differs from %s %v, or is missing", name, g.DType, g.Shape, w.DType, w.Shape)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// blobsOf returns the digests of an image's layers, by kind and name.
func blobsOf(t *testing.T, s *store.Store, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, l := range mustResolve(t, s, name).Image.Layers {
		out[string(l.Kind)+" "+l.Name] = string(l.Digest)
	}
	return out
}

// fixture returns the path of a checkpoint in testdata.
func fixture(name string) string { return filepath.Join("..", "testdata", "models", name) }

// An exported checkpoint equals the imported one, in one file or many, and creates the same image.
func TestExportPlain(t *testing.T) {
	for _, name := range runtest.Sample([]string{
		"llama-default", "llama-f32", "qwen3_moe-published", "glm4_moe_lite-published", "gemma3-published", "gemma4-e2b",
		"qwen3_5-published", "qwen3_5_moe-published",
		"qwen3_5_moe-next-published", "qwen3_5-vision", "gpt2-saved", "gpt_neox-published",
		"gpt_oss-saved",
	}) {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			first := mustCreate(t, s, "a", from(fixture(name)), Options{})
			dir := filepath.Join(t.TempDir(), "out")
			out := mustExport(t, s, "a", dir, export.Options{MaxShard: 64 << 10})
			if want := first.Tensors; want == 0 || len(out.Files) < 3 {
				t.Errorf("%+v", out)
			}
			got, want := folderTensors(t, dir), folderTensors(t, fixture(name))
			for tensor := range want {
				if _, ok := got[tensor]; !ok {
					delete(want, tensor) // dropped by the import
				}
			}
			sameTensors(t, got, want)
			if a, b := readFile(t, filepath.Join(dir, source.ConfigName)),
				readFile(t, filepath.Join(fixture(name), source.ConfigName)); a != b {
				t.Errorf("config.json is another")
			}
			mustCreate(t, s, "b", from(dir), Options{})
			if diff := cmp.Diff(blobsOf(t, s, "a"), blobsOf(t, s, "b")); diff != "" {
				t.Error(diff)
			}
			if again := mustResolve(t, s, "b").Digest; again != first.Digest {
				t.Errorf("the image is another: %s, not %s", again, first.Digest)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Quantized weights are exported in mlx-lm's layout, and create the same image.
func TestExportQuantized(t *testing.T) {
	for _, c := range runtest.Sample([]struct {
		model string
		p     recipe.Precision
		keys  []string
	}{
		{
			"llama-default", recipe.Precision{Type: quantize.Int4},
			[]string{"model.layers.0.mlp.gate_proj.scales", "model.layers.0.mlp.gate_proj.biases"},
		},
		{
			"llama-default",
			recipe.Precision{
				Type: quantize.Int4,
				Rules: []recipe.Rule{
					{Match: "*.o_proj.weight", Type: quantize.Int3.WithGroup(32)}, {Match: "*.up_proj.weight", Type: quantize.MXFP8},
				},
			},
			nil,
		},
		{"llama-default", recipe.Precision{Type: quantize.NVFP4, Uniform: true}, nil},
		{
			"qwen3_moe-published", recipe.Precision{Type: quantize.Int4.WithGroup(32)},
			[]string{"model.layers.1.mlp.switch_mlp.gate_proj.scales", "model.layers.1.mlp.switch_mlp.down_proj.biases"},
		},
		{"glm4_moe_lite-published", recipe.Precision{Type: quantize.MXFP4}, nil},
		{
			"gemma4-26b-a4b", recipe.Precision{Type: quantize.Int8.WithGroup(32)},
			[]string{"language_model.model.layers.0.experts.switch_glu.up_proj.scales"},
		},
		{
			"qwen3_5_moe-published", recipe.Precision{Type: quantize.Int4.WithGroup(32)},
			[]string{"language_model.model.layers.0.mlp.switch_mlp.up_proj.scales", "language_model.lm_head.weight"},
		},
		{
			"qwen3_5_moe-next-published", recipe.Precision{Type: quantize.Int4.WithGroup(32), Uniform: true},
			[]string{"model.layers.0.linear_attn.in_proj_qkvz.scales"},
		},
		{
			"gpt_oss-saved", recipe.Precision{Type: quantize.MXFP4},
			[]string{"model.layers.0.mlp.experts.gate_proj.scales", "model.layers.0.mlp.experts.down_proj.bias"},
		},
		{"gpt_oss-published", recipe.Precision{}, []string{"model.layers.1.mlp.experts.up_proj.scales"}},
		{"gpt_oss-saved", recipe.Precision{Type: quantize.Int8.WithGroup(32)}, nil},
	}) {
		t.Run(c.model+" "+c.p.Type.String(), func(t *testing.T) {
			s := openStore(t)
			mustCreate(t, s, "a", from(fixture(c.model)), Options{Precision: c.p})
			dir := filepath.Join(t.TempDir(), "out")
			mustExport(t, s, "a", dir, export.Options{})
			got := folderTensors(t, dir)
			for _, key := range c.keys {
				if _, ok := got[key]; !ok {
					t.Errorf("no tensor %s", key)
				}
			}
			checkQuantization(t, dir, got)
			mustCreate(t, s, "b", from(dir), Options{})
			a, b := blobsOf(t, s, "a"), blobsOf(t, s, "b")
			delete(a, "file "+settings.RecordName) // differs: it records the requested type
			delete(b, "file "+settings.RecordName)
			if diff := cmp.Diff(a, b); diff != "" && c.model != "qwen3_5_moe-next-published" {
				t.Error(diff)
			}
		})
	}
}

// checkQuantization compares the configured bits and groups with the tensors' shapes.
func checkQuantization(t *testing.T, dir string, got map[string]tensor) {
	t.Helper()
	var config struct {
		Quantization map[string]any `json:"quantization"`
		Twin         map[string]any `json:"quantization_config"`
	}
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, source.ConfigName))), &config); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(config.Quantization, config.Twin) || config.Quantization == nil {
		t.Errorf("quantization %v, quantization_config %v", config.Quantization, config.Twin)
	}
	packed := 0
	for name, scales := range got {
		path, ok := strings.CutSuffix(name, ".scales")
		if !ok {
			continue
		}
		packed++
		entry := config.Quantization
		if own, ok := entry[path].(map[string]any); ok {
			entry = own
		}
		bits, group := int64(entry["bits"].(float64)), int64(entry["group_size"].(float64))
		codes := got[path+".weight"]
		last := len(codes.Shape) - 1
		if codes.DType != safetensors.U32 || codes.Shape[last]*32/bits != scales.Shape[last]*group {
			t.Errorf("%s: %s %v with scales %v, the configuration says %v", path, codes.DType, codes.Shape, scales.Shape, entry)
		}
		if _, biased := got[path+".biases"]; biased != (entry["mode"] == "affine") {
			t.Errorf("%s: mode %v, biases %v", path, entry["mode"], biased)
		}
	}
	if packed == 0 {
		t.Error("nothing is quantized")
	}
}

// Dequantized weights equal float32 arithmetic, rounded once, and the configuration has no trace of the quantization.
func TestExportDequantized(t *testing.T) {
	s := openStore(t)
	mustCreate(t, s, "a", from(fixture("llama-default")), Options{Precision: recipe.Precision{Type: quantize.Int4,
		Rules: []recipe.Rule{{Match: "*.k_proj.weight", Type: quantize.NVFP4}}}})
	wide := filepath.Join(t.TempDir(), "f32")
	mustExport(t, s, "a", wide, export.Options{Dequantize: quantize.ToF32})
	narrow := filepath.Join(t.TempDir(), "bf16")
	mustExport(t, s, "a", narrow, export.Options{Dequantize: quantize.ToBF16})
	a, b := folderTensors(t, wide), folderTensors(t, narrow)
	image := mustResolve(t, s, "a").Image
	for name := range folderTensors(t, fixture("llama-default")) {
		meta, parts := arrays(t, s, image, name)
		if meta == nil {
			if !bytes.Equal(a[name].data, parts[0].data) || !bytes.Equal(b[name].data, parts[0].data) {
				t.Errorf("%s: a plain tensor changed", name)
			}
			continue
		}
		typ, _, err := quantize.ParseType(meta[blob.MetaType])
		if err != nil {
			t.Fatal(err)
		}
		if group, err := strconv.Atoi(meta[blob.MetaGroup]); err != nil || group != typ.Group() {
			typ = typ.WithGroup(group)
		}
		blocks := quantize.Blocks{Packed: parts[0].data, Scales: parts[1].data}
		if len(parts) > 2 {
			n := int64(len(parts[1].data) / 2)
			blocks.Scales, blocks.Biases = encoded(t, quantize.ToF32, parts[1].data, quantize.BF16, n),
				encoded(t, quantize.ToF32, parts[2].data, quantize.BF16, n)
		}
		want := make([]byte, len(a[name].data))
		if err := typ.Decode(want, quantize.F32, blocks, quantize.F32); err != nil {
			t.Fatal(err)
		}
		if a[name].DType != safetensors.F32 || !bytes.Equal(a[name].data, want) {
			t.Errorf("%s: the float32 differs", name)
		}
		if b[name].DType != safetensors.BF16 || !bytes.Equal(b[name].data,
			encoded(t, quantize.ToBF16, want, quantize.F32, int64(len(want)/4))) {
			t.Errorf("%s: the bf16 differs", name)
		}
	}
	for dir, want := range map[string]string{wide: "float32", narrow: "bfloat16"} {
		var config map[string]any
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, source.ConfigName))), &config); err != nil ||
			config["torch_dtype"] != want || config["quantization"] != nil {
			t.Errorf("%v, config %v", err, config)
		}
	}
}

// What a checkpoint's files cannot express is in a Modelfile, which creates the same image.
func TestExportModelfile(t *testing.T) {
	s := openStore(t)
	f := from(fixture("gemma4-pair"), modelfile.Command{Name: modelfile.System, Value: "Be kind."},
		modelfile.Command{Name: modelfile.Parameter, Key: "num_ctx", Value: "64"},
		modelfile.Command{Name: modelfile.Message, Key: "user", Value: "Hello"},
		modelfile.Command{Name: modelfile.Draft, Value: fixture("gemma4_assistant-pair")})
	first := mustCreate(t, s, "a", f, Options{Precision: recipe.Precision{Type: quantize.Int8, Draft: quantize.Int8}})
	dir := filepath.Join(t.TempDir(), "out")
	out := mustExport(t, s, "a", dir, export.Options{})
	if !slices.Contains(out.Files, "draft/config.json") || !slices.Contains(out.Files, "Modelfile") {
		t.Errorf("files %v", out.Files)
	}
	parsed, err := modelfile.Parse("Modelfile", []byte(readFile(t, filepath.Join(dir, "Modelfile"))))
	if err != nil {
		t.Fatal(err)
	}
	again := mustCreate(t, s, "b", parsed, Options{Dir: dir})
	a, b := blobsOf(t, s, "a"), blobsOf(t, s, "b")
	delete(a, "file "+settings.RecordName)
	delete(b, "file "+settings.RecordName)
	if diff := cmp.Diff(a, b); diff != "" || again.Tensors != first.Tensors {
		t.Error(diff)
	}
}

// An export is atomic.
func TestExportFolder(t *testing.T) {
	s := openStore(t)
	mustCreate(t, s, "a", from(fixture("llama-default")), Options{})
	entry := mustResolve(t, s, "a")
	full := t.TempDir()
	writeFile(t, filepath.Join(full, "mine"), []byte("x"))
	if _, err := export.Folder(t.Context(), s, entry, full, export.Options{}); !errors.Is(err, export.ErrExport) ||
		!strings.Contains(err.Error(), "mine") {
		t.Errorf("error %v", err)
	}
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, ".ingot-export-"+"1"), 0o755); err != nil { // left by a killed export
		t.Fatal(err)
	}
	mustExport(t, s, "a", empty, export.Options{})
	absent := filepath.Join(t.TempDir(), "x", "y")
	for i, stop := range []int64{1, 40_000, 200_000} {
		cancelled, cancel := context.WithCancel(t.Context())
		_, err := export.Folder(cancelled, s, entry, absent, export.Options{Progress: func(e write.Event) {
			if e.Bytes >= stop {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: error %v", i, err)
		}
		if _, err := os.Stat(absent); !os.IsNotExist(err) {
			t.Errorf("%d: %s was left: %v", i, absent, err)
		}
		cancel()
	}
	if list, err := os.ReadDir(full); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	if _, err := export.Folder(t.Context(), s, entry, absent, export.Options{Dequantize: quantize.Int4}); !errors.Is(err,
		export.ErrExport) {
		t.Errorf("error %v", err)
	}
}

// A checkpoint written by mlx-lm is exported byte for byte.
func TestExportOfMLX(t *testing.T) {
	for _, name := range runtest.Sample([]string{
		"mlx-every", "mlx-experts", "mlx-gemma4-experts", "mlx-int4-g32", "mlx-mixed_2_6", "mlx-mixed_3_4", "mlx-mxfp8",
		"mlx-nvfp4", "mlx-qwen3_5",
	}) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("..", "testdata", "sources", name)
			s := openStore(t)
			mustCreate(t, s, "a", from(folder), Options{})
			dir := filepath.Join(t.TempDir(), "out")
			mustExport(t, s, "a", dir, export.Options{})
			got := folderTensors(t, dir)
			sameTensors(t, got, folderTensors(t, folder))
			checkQuantization(t, dir, got)
			mustCreate(t, s, "b", from(dir), Options{})
			if diff := cmp.Diff(blobsOf(t, s, "a"), blobsOf(t, s, "b")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
