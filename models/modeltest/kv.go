package modeltest

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/models"
)

// inBits is a model whose caches keep keys and values in 8 or 4 bits.
type inBits struct {
	models.Model
	bits int
}

func (m inBits) Layers() []cache.Kind { return cache.Packed(m.Model.Layers(), m.bits) }

// Limits of mean divergences of caches in 8 and 4 bits: from the reference, and of one way that tokens take from another,
// which rounding puts a step of a code apart here and there.
const (
	maxKV8KL, maxKV4KL = 0.005, 0.3
	maxKVPathKL        = 1e-5
)

// checkKV wants the reference's distributions from caches in 8 bits, and such as are not astray from those in 4; and the same
// whatever way the tokens take.
func (c *Checkpoint) checkKV(t *testing.T) {
	t.Helper()
	for _, bits := range []int{8, 4} {
		t.Run(fmt.Sprint(bits, " bits"), func(t *testing.T) {
			m := inBits{c.Model, bits}
			whole := c.chunked(t, m, len(c.Tokens), nil)
			c.checkKL(t, whole, c.Logits, map[int]float64{8: cmp.Or(c.Limits.KV8, maxKV8KL), 4: cmp.Or(c.Limits.KV4, maxKV4KL)}[bits])
			c.checkKL(t, c.chunked(t, m, 7, nil), whole, maxKVPathKL)
			c.checkKL(t, c.packed(t, m), whole, maxKVPathKL)
			c.checkKL(t, c.restored(t, m), whole, maxKVPathKL)
		})
	}
}
