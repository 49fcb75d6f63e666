package ranks

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/ingotml/ingot/cache/prefix"
)

// coder encodes values, or decodes them: each method is both, so that the two cannot differ. Numbers are varints.
type coder struct {
	decoding bool
	b        []byte // encoded so far, or left to decode
	err      error  // of decoding; values after it are zero
}

var errTruncated = errors.New("a command ends early or has a number out of range")

func (c *coder) uint(v *uint64) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	u, n := binary.Uvarint(c.b)
	if n <= 0 || c.err != nil {
		*v = 0
		c.fail()
		return
	}
	*v, c.b = u, c.b[n:]
}

func (c *coder) fail() {
	if !c.decoding {
		panic("ranks: a command with a number out of range")
	}
	c.b = nil
	if c.err == nil {
		c.err = errTruncated
	}
}

// int codes a number that is not negative and fits into 31 bits.
func (c *coder) int(v *int) {
	u := uint64(*v)
	c.uint(&u)
	if u > math.MaxInt32 {
		c.fail()
		u = 0
	}
	*v = int(u)
}

// signed codes a number of 32 bits.
func (c *coder) signed(v *int32) {
	u := uint64(uint32(*v)<<1) ^ uint64(uint32(*v>>31))
	c.uint(&u)
	if u > math.MaxUint32 {
		c.fail()
		u = 0
	}
	*v = int32(uint32(u)>>1) ^ -int32(u&1)
}

func (c *coder) bool(v *bool) {
	u := uint64(0)
	if *v {
		u = 1
	}
	c.uint(&u)
	if u > 1 {
		c.fail()
	}
	*v = u == 1
}

// string codes a short text.
func (c *coder) string(v *string) {
	n := uint64(len(*v))
	c.uint(&n)
	if !c.decoding {
		c.b = append(c.b, *v...)
		return
	}
	if n > uint64(len(c.b)) {
		c.fail()
		n = 0
	}
	*v, c.b = string(c.b[:n]), c.b[n:]
}

// list codes a list. An element takes at least a byte, so that a short message cannot ask for a long list.
func list[T any](c *coder, all *[]T, one func(*T)) {
	n := uint64(len(*all))
	c.uint(&n)
	if c.decoding {
		*all = nil
		if n > uint64(len(c.b)) {
			c.fail()
			return
		}
	}
	for i := uint64(0); i < n && c.err == nil; i++ {
		if c.decoding {
			var v T
			*all = append(*all, v)
		}
		one(&(*all)[i])
	}
}

func (c *coder) tokens(v *[]int32)    { list(c, v, c.signed) }
func (c *coder) keys(v *[]prefix.Key) { list(c, v, func(k *prefix.Key) { c.uint((*uint64)(k)) }) }
