package convert

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/safetensors"
)

// headerFolder is a folder that notes reads of tensors' data.
type headerFolder struct {
	safetensors.Dir
	mu    sync.Mutex
	reads []string
}

func (h *headerFolder) Open(name string) (fs.File, error) {
	f, err := h.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	file, end := f.(*os.File), int64(0)
	switch filepath.Ext(name) {
	default:
		return f, nil
	case ".safetensors":
		var size [8]byte
		_, err = file.ReadAt(size[:], 0)
		end = int64(binary.LittleEndian.Uint64(size[:])) + 8
	case ".gguf":
		info, errStat := file.Stat()
		header, errRead := gguf.Read(file, info.Size())
		err = errors.Join(errStat, errRead)
		if err == nil {
			end = header.Data
		}
	}
	return &headerFile{file, h, end}, err
}

type headerFile struct {
	*os.File
	folder *headerFolder
	end    int64 // of the header
}

func (f *headerFile) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= f.end {
		f.folder.mu.Lock()
		f.folder.reads = append(f.folder.reads, f.Name())
		f.folder.mu.Unlock()
	}
	return f.File.ReadAt(p, offset)
}

// TestHeadersOnly makes the plan of every fixture without data of its tensors. It differs from the plan with them in
// what it says is assumed, and in nothing else.
func TestHeadersOnly(t *testing.T) {
	differs := map[string]string{ // by what is assumed
		"packed-int4-zeros": "scales", "gptq-auto-round": "scales", "gptq-auto-round-mixed": "scales",
		"packed-actorder": "order", "gptq-desc-act": "order",
	}
	// Their headers do not have the shapes of weights. Each weight has them in one or a few numbers beside its codes.
	shapes := map[string]int{"bnb-nf4": 1, "bnb-fp4": 1, "hqq": 4, "hqq-axis0": 4}
	for _, dir := range []string{"sources", "models"} {
		entries, err := os.ReadDir(filepath.Join("..", "testdata", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join("..", "testdata", dir, e.Name())
			if _, err := os.Stat(filepath.Join(path, "config.json")); err != nil {
				continue
			}
			t.Run(dir+"/"+e.Name(), func(t *testing.T) {
				folder := &headerFolder{Dir: safetensors.Dir(path)}
				headers := folderPlan(t, folder, true)
				if len(folder.reads) > 14*shapes[e.Name()] {
					t.Errorf("%d reads of data, the first of %s", len(folder.reads), folder.reads[0])
				}
				if headers == nil {
					return // it cannot be imported without a type
				}
				full := folderPlan(t, safetensors.Dir(path), false)
				if full.Assumed != nil {
					t.Errorf("with data: assumed %q", full.Assumed)
				}
				same := headers.Totals.Bytes == full.Totals.Bytes && slices.EqualFunc(headers.Tensors, full.Tensors,
					func(a, b plan.Tensor) bool { return a.Name == b.Name && a.Type == b.Type && a.Bytes == b.Bytes })
				why, known := differs[e.Name()]
				if said := strings.Contains(strings.Join(headers.Assumed, "\n"), why); !same && !(known && said) {
					t.Errorf("the plan has %d bytes, with data %d; assumed: %q",
						headers.Totals.Bytes, full.Totals.Bytes, headers.Assumed)
				}
			})
		}
	}
}

// The same for GGUF files, of which the type of dequantized elements alone is assumed. Factors of the rotary embedding
// are read: they are a part of the configuration that llama.cpp keeps in one or two small tensors.
func TestHeadersOnlyGGUF(t *testing.T) {
	files, err := filepath.Glob("testdata/gguf/*.gguf")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			folder := &headerFolder{Dir: safetensors.Dir(filepath.Dir(file))}
			var sizes []int64
			for _, headersOnly := range []bool{true, false} {
				src, err := source.OpenFile(folder, filepath.Base(file), source.Options{HeadersOnly: headersOnly})
				if err != nil {
					t.Fatal(err)
				}
				p, err := plan.New(t.Context(), src, plan.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sizes = append(sizes, p.Totals.Bytes)
				if headersOnly && len(folder.reads) > 2 {
					t.Errorf("%d reads of data", len(folder.reads))
				}
				if err := src.Close(); err != nil {
					t.Error(err)
				}
			}
			if sizes[0] != sizes[1] {
				t.Errorf("%d bytes, with data %d", sizes[0], sizes[1])
			}
		})
	}
}

// folderPlan returns nil for a checkpoint whose codes no type holds.
func folderPlan(t *testing.T, folder safetensors.Folder, headersOnly bool) *plan.Plan {
	t.Helper()
	src, err := source.OpenFolder(folder, source.Options{HeadersOnly: headersOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	p, err := plan.New(t.Context(), src, plan.Options{})
	if err != nil && strings.Contains(err.Error(), "ask for a type") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Packers of GPTQ write a bias for every layer. Without data it counts as zero, unless the model has biases there.
func TestHeadersOnlyBiases(t *testing.T) {
	for _, biased := range []bool{false, true} {
		c := published(t, "gptq")
		for _, list := range c.tensors {
			for _, w := range list {
				if base, ok := strings.CutSuffix(w.Name, ".scales"); ok {
					rows := w.Shape[1]
					c.add("model.safetensors", tensor{safetensors.Tensor{Name: base + ".bias", DType: safetensors.F16,
						Shape: []int64{rows}}, make([]byte, 2*rows)})
				}
			}
		}
		want := 0
		if biased {
			config := c.files[source.ConfigName]
			c.files[source.ConfigName] = strings.Replace(config, `"attention_bias": false`, `"attention_bias": true`, 1)
			want = 2 * 4
		}
		p := folderPlan(t, safetensors.Dir(c.write(t, t.TempDir())), true)
		got := 0
		for _, w := range p.Tensors {
			if strings.HasSuffix(w.Name, ".bias") {
				got++
			}
		}
		if dropped := 2*7 - got; got != want || len(p.Dropped) != dropped {
			t.Errorf("biased %v: %d biases, want %d; %d tensors are dropped, want %d",
				biased, got, want, len(p.Dropped), dropped)
		}
	}
}
