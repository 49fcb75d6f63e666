// Command hub times `ingot create -q int4` of a synthetic checkpoint from a folder, from a fake hub over loopback, and
// from one with 50 ms of latency and 100 MB/s: bench/results/hub.json.
//
// Usage: hub [-gigabytes N] [-runs N] INGOT RESULT
package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/arch"
	_ "github.com/ingotml/ingot/arch/types" // registers every model type
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/safetensors"
)

const (
	latency   = 50 * time.Millisecond
	bandwidth = 100_000_000 // bytes per second
	shards    = 4
)

// result is the file that the benchmark writes.
type result struct {
	Local        float64 `json:"local_s"`
	Hub          float64 `json:"hub_s"`
	Limited      float64 `json:"limited_s"`
	LimitedIdeal float64 `json:"limited_ideal_s"` // the bytes over the bandwidth
	Peak         int64   `json:"peak_mib"`        // of the create from the hub
	Disk         int64   `json:"disk_mib"`        // that a create from the hub uses beyond one from a folder
}

func main() {
	gigabytes := flag.Float64("gigabytes", 2, "size of the checkpoint")
	runs := flag.Int("runs", 3, "runs of each kind; the median counts")
	flag.Parse()
	if err := run(*gigabytes, *runs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

func run(gigabytes float64, runs int, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: hub [-gigabytes N] [-runs N] INGOT RESULT")
	}
	work, err := os.MkdirTemp("", "bench-hub-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	dir := filepath.Join(work, "checkpoint")
	size, err := makeCheckpoint(dir, gigabytes)
	if err != nil {
		return err
	}
	h := hubtest.New()
	defer h.Close()
	if _, err := h.AddFolder("bench/model", dir); err != nil {
		return err
	}
	b := bench{ingot: args[0], work: work, hub: h, runs: runs}
	local, err := b.median(dir)
	if err != nil {
		return err
	}
	over, err := b.median("hf.co/bench/model")
	if err != nil {
		return err
	}
	h.Set(func(h *hubtest.Hub) { h.Latency, h.Bandwidth = latency, bandwidth })
	limited, err := b.median("hf.co/bench/model")
	if err != nil {
		return err
	}
	r := result{
		Local: local.seconds, Hub: over.seconds, Limited: limited.seconds, LimitedIdeal: float64(size) / bandwidth,
		Peak: max(over.peak, limited.peak) >> 20, Disk: max(over.disk-local.disk, limited.disk-local.disk) >> 20,
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	if err := os.MkdirAll(filepath.Dir(args[1]), 0o755); err != nil {
		return err
	}
	return os.WriteFile(args[1], append(out, '\n'), 0o644)
}

type bench struct {
	ingot, work string
	hub         *hubtest.Hub
	runs        int
}

// measured is one create.
type measured struct {
	seconds    float64
	peak, disk int64 // bytes
}

// median creates an image several times and returns the run with the median time.
func (b bench) median(from string) (measured, error) {
	var all []measured
	for range b.runs {
		m, err := b.create(from)
		if err != nil {
			return m, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(x, y measured) int { return cmp.Compare(x.seconds, y.seconds) })
	return all[len(all)/2], nil
}

func (b bench) create(from string) (measured, error) {
	home, err := os.MkdirTemp(b.work, "home-*")
	if err != nil {
		return measured{}, err
	}
	defer os.RemoveAll(home)
	c := exec.Command(b.ingot, "create", "m", from, "-q", "int4", "--quiet")
	c.Env = append(os.Environ(), "INGOT_HOME="+filepath.Join(home, "store"), "HF_HOME="+filepath.Join(home, "hf"),
		"HF_ENDPOINT="+b.hub.URL(), "HF_HUB_CACHE=", "HF_TOKEN=")
	c.Stderr = os.Stderr
	begun := time.Now()
	if err := c.Run(); err != nil {
		return measured{}, err
	}
	m := measured{seconds: time.Since(begun).Seconds(), peak: peakOf(c.ProcessState)}
	err = filepath.WalkDir(home, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			m.disk += info.Size()
		}
		return err
	})
	return m, err
}

// makeCheckpoint writes a sharded bf16 checkpoint of about the given size and returns the size of its weights.
func makeCheckpoint(dir string, gigabytes float64) (int64, error) {
	const hidden, inner = 2048, 8192
	perLayer := float64(2 * (4*hidden*hidden + 3*hidden*inner))
	layers := max(int(gigabytes*1e9/perLayer), 1)
	config := fmt.Sprintf(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 4096,
"hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": 16,
"num_key_value_heads": 16, "max_position_embeddings": 4096, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`,
		hidden, inner, layers)
	m, err := arch.Detect([]byte(config))
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644); err != nil {
		return 0, err
	}
	specs := m.Table().Specs
	weights := map[string]string{}
	var total int64
	for i := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		var tensors []safetensors.Tensor
		for _, s := range specs[i*len(specs)/shards : (i+1)*len(specs)/shards] {
			t := safetensors.Tensor{Name: s.Name, DType: safetensors.BF16, Shape: s.Shape}
			tensors, weights[s.Name], total = append(tensors, t), name, total+t.Size()
		}
		if err := writeShard(filepath.Join(dir, name), tensors, uint64(i)); err != nil {
			return 0, err
		}
	}
	index, err := json.Marshal(map[string]any{"weight_map": weights})
	if err != nil {
		return 0, err
	}
	return total, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), index, 0o644)
}

func writeShard(path string, tensors []safetensors.Tensor, seed uint64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	r := weightsReader{rand.New(rand.NewPCG(seed, 1))}
	err = safetensors.Write(f, tensors, nil, func(i int) (io.Reader, error) {
		return io.LimitReader(r, tensors[i].Size()), nil
	})
	return errors.Join(err, f.Close())
}

// weightsReader generates bf16 numbers of magnitude 2^-8 to 2^-5.
type weightsReader struct{ r *rand.Rand }

func (w weightsReader) Read(p []byte) (int, error) {
	n := len(p) &^ 7
	for i := 0; i < n; i += 8 {
		const exponents, rest = 0x3b803b803b803b80, 0x81ff81ff81ff81ff
		binary.LittleEndian.PutUint64(p[i:], exponents|w.r.Uint64()&rest)
	}
	return n, nil
}
