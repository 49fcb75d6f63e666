// Package modeltest checks models against the reference implementation's logits, on the checkpoints of testdata.
//
// It computes with the stored weights in float32, like the goldens (testdata/gen/README.md), and with quantized
// weights, in float32 and in the type of the stored weights.
package modeltest

import (
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
)

// Tolerance is the largest allowed difference of a logit from the reference on any device, in standard deviations of
// the logits. On a CPU, models are held to a smaller one, or to that of their [Limits].
const (
	Tolerance    = 2e-3
	cpuTolerance = 1e-4
)

// Checkpoint is a loaded model of testdata and its reference results.
type Checkpoint struct {
	Model  models.Model // in float32
	Tokens []int32
	Logits []float32 // [len(Tokens), Vocab]
	Vocab  int
	Greedy []int32
	Scale  float64 // standard deviation of Logits

	Limits Limits // of the checks in other precisions

	gpu bool // it runs on a GPU

	config  arch.Model
	tensors []tensor
}

// Dir returns a folder of testdata/models.
func Dir(name string) string { return filepath.Join(testdata(), "models", name) }

// Reference returns a file of testdata/reference.
func Reference(name string) string {
	return filepath.Join(testdata(), "reference", name+".safetensors")
}

func testdata() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata")
}

// Load loads a checkpoint and its reference. The model is freed when the test ends.
func Load(t *testing.T, name string) *Checkpoint {
	t.Helper()
	c := &Checkpoint{}
	c.config, c.tensors = read(t, name)
	c.Vocab = int(c.config.Facts().Vocab)
	c.reference(t, name)
	c.Model, _ = c.load(t, prec{dtype: mlx.Float32})
	mlxtest.Do(t, func(e *mlx.Thread) { c.gpu = e.Info().GPU })
	return c
}

func (c *Checkpoint) reference(t *testing.T, name string) {
	t.Helper()
	c.Tokens, c.Greedy = Golden[int32](t, name, "tokens"), Golden[int32](t, name, "greedy")
	c.Logits = Golden[float32](t, name, "logits")
	var sum, squares float64
	for _, v := range c.Logits {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(c.Logits))
	c.Scale = math.Sqrt(squares/n - sum/n*sum/n)
	if len(c.Logits) != len(c.Tokens)*c.Vocab {
		t.Fatalf("%s: %d logits for %d tokens", Reference(name), len(c.Logits), len(c.Tokens))
	}
}
