package cmd_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/safetensors"
)

// A model whose tensors take 192 MB, and 384 MB in float32, and the memory of each machine's processes. Besides tensors
// they take 256 MB by the server's estimate.
const (
	largeIntermediate = 33280
	machineMemory     = 500e6
)

// largeModel writes the test model with wider feed-forward blocks of random weights.
func largeModel(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	from := filepath.Join("..", "testdata", "models", "demo")
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	config["intermediate_size"] = largeIntermediate
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	m, err := arch.Detect(text)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for _, s := range m.Table().Specs {
		tensors = append(tensors, safetensors.Tensor{Name: s.Name, DType: "BF16", Shape: s.Shape})
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	weights, ones := &repeated{}, &repeated{b: []byte{0x80, 0x3f}}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1 << 15 {
		v := math.Float32bits(float32(r.NormFloat64()) * 0.02)
		weights.b = binary.LittleEndian.AppendUint16(weights.b, uint16(v>>16))
	}
	err = safetensors.Write(f, tensors, nil, func(i int) (io.Reader, error) {
		bytes := int64(2)
		for _, n := range tensors[i].Shape {
			bytes *= n
		}
		if len(tensors[i].Shape) == 1 {
			return io.LimitReader(ones, bytes), nil
		}
		return io.LimitReader(weights, bytes), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// repeated reads the same bytes again and again.
type repeated struct {
	b  []byte
	at int
}

func (r *repeated) Read(b []byte) (n int, err error) {
	for n < len(b) {
		k := copy(b[n:], r.b[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.b)
	}
	return n, nil
}

// A model that exceeds the memory of a machine's control group runs on two of them, and not on one.
func TestWorkersExceedMemory(t *testing.T) {
	if runtest.Race {
		t.Skip("the race detector multiplies memory by 5 to 10: make test runs this without it")
	}
	needEngine(t)
	own, missing := memoryGroup(t, machineMemory)
	if missing != nil {
		t.Skip(missing)
	}
	other, missing := memoryGroup(t, machineMemory)
	if missing != nil {
		t.Skip(missing)
	}
	if out, err := exec.Command("unshare", "--uts", "true").CombinedOutput(); err != nil {
		t.Skipf("a process cannot have a host name of its own: %v %s", err, out)
	}
	home := filepath.Join(t.TempDir(), "store")
	ingot(t, home, "create", "large", largeModel(t))
	prompt := strings.Replace(workersPrompt, "demo", "large", 1)
	one := serveIn(t, home, own, nil, "--float32", "--cache-size", "0")
	if got := one.text(t, prompt); !strings.HasPrefix(got, "error") || !strings.Contains(got, "does not fit into memory") {
		t.Errorf("one machine says %q", got)
	}
	_ = one.Process.Kill()
	_ = one.Wait()

	token := tokenFile(t, strings.Repeat("token", 8))
	// Ranks on hosts of one name share its memory.
	named := append(inGroup(other), "unshare", "--uts", "sh", "-c",
		`echo other-machine >/proc/sys/kernel/hostname && exec "$0" "$@"`)
	w := startWorker(t, filepath.Join(t.TempDir(), "worker"), token, "127.0.0.1:0", named...)
	s := serveIn(t, home, own, nil, "--float32", "--cache-size", "0", "--workers", w.addr, "--token-file", token)
	if got := s.text(t, prompt); got == "" || strings.HasPrefix(got, "error") {
		t.Errorf("two machines say %q\n%s\n%s", got, s.errs, w.errs)
	}
}
