package modeltest

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/models"
)

// inBits is a model whose caches store keys and values in 8 or 4 bits.
type inBits struct {
	models.Model
	bits int
}

func (m inBits) Layers() []cache.Kind { return cache.Packed(m.Model.Layers(), m.bits) }

// Limits of the mean divergence with 8-bit and 4-bit caches: from the reference, and between paths, which occasionally
// differ by one step of a code because of rounding.
const (
	maxKV8KL, maxKV4KL = 0.005, 0.3
	maxKVPathKL        = 1e-5
)

// checkKV compares distributions with 8-bit and 4-bit caches with the reference's, within a loose limit for 4 bits, and
// all paths with each other.
func (c *Checkpoint) checkKV(t *testing.T) {
	t.Helper()
	for _, bits := range []int{8, 4} {
		t.Run(fmt.Sprint(bits, " bits"), func(t *testing.T) {
			m := inBits{c.Model, bits}
			whole := c.chunked(t, m, len(c.Tokens), nil)
			limits := map[int]float64{8: cmp.Or(c.Limits.KV8, maxKV8KL), 4: cmp.Or(c.Limits.KV4, maxKV4KL)}
			c.checkKL(t, whole, c.Logits, limits[bits])
			c.checkKL(t, c.chunked(t, m, 7, nil), whole, maxKVPathKL)
			c.checkKL(t, c.packed(t, m), whole, maxKVPathKL)
			c.checkKL(t, c.restored(t, m), whole, maxKVPathKL)
		})
	}
}
