package cmd_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/safetensors"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// TestKilledCreatePush kills creates that keep nothing at random moments. Run again, they end in the digest of a local
// create, and what the registry lost meanwhile is made again.
func TestKilledCreatePush(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "models", "llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	peer := newTestRegistry(t.Cleanup)
	local := t.TempDir()
	_, want, _ := strings.Cut(strings.TrimSpace(ingot(t, local, "create", "m", dir, "-q", "int4")), "@")
	name := peer.addr + "/team/m:int4"
	args := []string{"create", name, dir, "-q", "int4", "--push", "--no-keep"}
	peer.count(0, nil)
	ingot(t, t.TempDir(), args...)
	ticks := peer.counted().ticks
	const kills = 3
	for round := range 2 {
		peer.empty()
		home := t.TempDir()
		for range kills {
			killed(t, peer, 1+rand.IntN(ticks), home, args...)
		}
		if round == 1 {
			peer.empty() // it had blobs of the killed runs
		}
		if got := strings.TrimSpace(ingot(t, home, args...)); got != name+"@"+want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
		fresh := t.TempDir()
		ingot(t, fresh, "pull", name)
		ingot(t, fresh, "fsck")
	}
}

// TestCreatePushDisk creates a model from a hub into a registry and keeps nothing: the store never takes more than
// 256 MiB, although the model is larger, and its embedding alone is. Killed at random moments and run again, it ends in
// the digest of the whole run. With INGOT_TEST_LONG the model has 2 GB and the creates are killed 20 times.
func TestCreatePushDisk(t *testing.T) {
	const most = 256 << 20
	layers, kills := runtest.Pick(1, 30), runtest.Pick(1, 20)
	dir := t.TempDir()
	weights := sparseCheckpoint(t, dir, layers)
	if weights < most*5/4 {
		t.Fatalf("%d bytes of weights show nothing", weights)
	}
	h := hubtest.New()
	defer h.Close()
	if _, err := h.AddFolder("large/model", dir); err != nil {
		t.Fatal(err)
	}
	host, blobs := diskRegistry(t)
	run := func(home, name string, after time.Duration) (out, errs string, err error) {
		stop, peak := make(chan struct{}), make(chan int64)
		go func() { peak <- watchSize(home, stop) }()
		out, errs, err = runHub(t, h, home, "", after, "create", name, "hf.co/large/model", "-q", "source", "--push",
			"--no-keep", "--quiet")
		close(stop)
		if n := <-peak; n > most {
			t.Errorf("the store had %d MB", n>>20)
		}
		return out, errs, err
	}
	begun := time.Now()
	out, errs, err := run(t.TempDir(), host+"/whole/m:v1", 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	whole := time.Since(begun)
	_, want, _ := strings.Cut(out, "@")
	for i := range kills {
		// Each round has a store and a repository of its own.
		home, name := t.TempDir(), fmt.Sprintf("%s/killed%d/m:v1", host, i)
		at := rand.N(whole)
		_, _, _ = run(home, name, at)
		got, errs, err := run(home, name, 0)
		if _, d, _ := strings.Cut(got, "@"); err != nil || d != want {
			t.Fatalf("killed after %s of %s: %q, want %q: %v\n%s", at, whole, got, want, err, errs)
		}
		if i == kills-1 {
			fresh := t.TempDir()
			ingot(t, fresh, "pull", name)
			ingot(t, fresh, "fsck")
		}
		// Twenty models do not fit on every disk.
		if err := os.RemoveAll(filepath.Join(blobs, fmt.Sprintf("killed%d", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// sparseCheckpoint writes a checkpoint of zeros but for a number at the begin of each tensor, and returns the size of
// its weights. Each layer has 58 MB, the embedding 315 MB.
func sparseCheckpoint(t *testing.T, dir string, layers int) (size int64) {
	t.Helper()
	conf := fmt.Sprintf(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 153600,
		"hidden_size": 1024, "intermediate_size": 8192, "num_hidden_layers": %d, "num_attention_heads": 8,
		"num_key_value_heads": 8, "max_position_embeddings": 4096, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`,
		layers)
	m, err := arch.Detect([]byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for _, s := range m.Table().Specs {
		tensors = append(tensors, safetensors.Tensor{Name: s.Name, DType: safetensors.BF16, Shape: s.Shape})
	}
	head, placed, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(head)
	for i, p := range placed {
		_, failed := f.WriteAt(binary.LittleEndian.AppendUint16(nil, uint16(i)), int64(len(head))+p.Begin)
		err = errors.Join(err, failed)
		size += p.End - p.Begin
	}
	err = errors.Join(err, f.Truncate(int64(len(head))+placed[len(placed)-1].End), f.Close(),
		os.WriteFile(filepath.Join(dir, "config.json"), []byte(conf), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// diskRegistry starts a registry that keeps blobs on the disk, and returns its address and its folder.
func diskRegistry(t *testing.T) (host, dir string) {
	t.Helper()
	dir = t.TempDir()
	registry := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreDir, RootDir: dir}})
	server := httptest.NewServer(registry)
	t.Cleanup(func() {
		server.Close()
		_ = registry.Close()
	})
	return strings.TrimPrefix(server.URL, "http://"), dir
}

// watchSize returns the largest size of a folder's files until stop is closed.
func watchSize(dir string, stop <-chan struct{}) (most int64) {
	for {
		var n int64
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // files come and go
			}
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
			return nil
		})
		most = max(most, n)
		select {
		case <-stop:
			return most
		case <-time.After(10 * time.Millisecond):
		}
	}
}
